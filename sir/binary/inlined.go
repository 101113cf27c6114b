package binary

import (
	"cmp"
	"context"
	"debug/dwarf"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/arch/x86/x86asm"

	"mirador/sir"
	"mirador/sir/safedwarf"
)

// instance is a place where a function is inlined.
type instance struct {
	name, symbol string // of the inlined function; the symbol is "" in languages without linkage names
	ranges       []piece
	entry        uint64 // where it begins, 0 if the compiler does not say it; gcc may leave it out of the ranges
	call         position
}

// mostInstances limits the instances of one program, and their ranges. Large programs have about 500,000.
const mostInstances = 4 << 20

var errManyInstances = errors.New("the debug information has too many inlined functions")

// holds reports whether an instruction belongs to the instance.
func (i *instance) holds(addr uint64) bool { return coveredBy(i.ranges, addr) > 0 }

// called returns the name with which ids and callers name the inlined function.
func (i *instance) called() string { return cmp.Or(i.symbol, i.name) }

// instancesOf returns the instances in the code of a compile unit.
func (t *lineTable) instancesOf(ctx context.Context, d *lineData, u compileUnit) ([]instance, error) {
	if known, ok := t.inlined.Load(u.First); ok {
		return known.([]instance), nil
	}
	w := inlinedWalk{d: d, ctx: ctx, unit: u, names: map[dwarf.Offset][2]string{}, count: &t.instances}
	_ = guard("", w.read) // what a damaged unit has before the damage
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case t.instances.Load() > mostInstances:
		return nil, errManyInstances
	}
	slices.SortStableFunc(w.found, func(a, b instance) int { return cmp.Compare(a.low(), b.low()) })
	t.inlined.Store(u.First, w.found)
	return w.found, nil
}

// inlinedWalk reads the inlined functions of one compile unit.
type inlinedWalk struct {
	d     *lineData
	ctx   context.Context
	unit  compileUnit
	lines *safedwarf.Lines
	names map[dwarf.Offset][2]string
	found []instance
	count *atomic.Int64 // instances and ranges of the program
}

func (w *inlinedWalk) read() (err error) {
	if w.lines, err = w.d.lines(w.ctx, w.unit); err != nil {
		return err
	}
	r := w.d.dwarf.Reader(w.ctx)
	r.Seek(w.unit.First)
	for depth := 0; w.count.Load() <= mostInstances; {
		e, err := r.Next()
		if err != nil || e == nil {
			return err
		}
		switch {
		case e.Tag == 0: // a damaged unit may have no end but this
			depth--
		case e.Tag == dwarf.TagInlinedSubroutine:
			w.add(e)
		}
		if e.Children {
			depth++
		}
		if depth <= 0 {
			return nil
		}
	}
	return nil
}

func (w *inlinedWalk) add(e *dwarf.Entry) {
	origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
	if !ok {
		return
	}
	ranges, err := w.d.dwarf.Ranges(e)
	if w.count.Add(1 + int64(len(ranges))); err != nil {
		return
	}
	i := instance{}
	i.entry, _ = e.Val(dwarf.AttrEntrypc).(uint64)
	for _, r := range ranges {
		if r[0] < r[1] && r[0] != 0 {
			i.ranges = append(i.ranges, piece{r[0], r[1]})
		}
	}
	name := w.name(origin, 0)
	if i.name, i.symbol = name[0], name[1]; i.name == "" && i.symbol == "" {
		return
	}
	line, _ := e.Val(dwarf.AttrCallLine).(int64)
	column, _ := e.Val(dwarf.AttrCallColumn).(int64)
	if file, ok := e.Val(dwarf.AttrCallFile).(int64); ok && w.lines != nil && line > 0 {
		i.call = position{printable(w.lines.File(int(file))), int(line), int(max(column, 0))}
	}
	w.found = append(w.found, i)
}

// name returns the name and the linkage name of the function that an entry describes.
func (w *inlinedWalk) name(at dwarf.Offset, depth int) (name [2]string) {
	const deepest = 4
	if known, ok := w.names[at]; ok || depth == deepest {
		return known
	}
	e, err := w.d.dwarf.Entry(w.ctx, at)
	if err != nil {
		return name
	}
	name[0], _ = e.Val(dwarf.AttrName).(string)
	name[1], _ = e.Val(dwarf.AttrLinkageName).(string)
	for _, link := range []dwarf.Attr{dwarf.AttrSpecification, dwarf.AttrAbstractOrigin} {
		if next, ok := e.Val(link).(dwarf.Offset); ok && (name[0] == "" || name[1] == "") {
			more := w.name(next, depth+1)
			name[0], name[1] = cmp.Or(name[0], more[0]), cmp.Or(name[1], more[1])
		}
	}
	name = [2]string{printable(name[0]), printable(name[1])}
	w.names[at] = name
	return name
}

// Inlined returns all places where a function is inlined as one region. name is that of the function in
// the source or the symbol table. It returns nil if the function is not inlined anywhere. Callers share
// the region and must not modify it.
func (im *Image) Inlined(ctx context.Context, name string) (*sir.Region, error) {
	key := "\x00" + name
	if known, ok := im.innerLines.find(key); ok {
		return &known[0], nil
	}
	if im.lines.data == nil {
		return nil, nil
	}
	d, err := im.lines.data.get(ctx)
	if d == nil {
		return nil, err
	}
	var found []instance
	symbols := map[string]bool{}
	for _, u := range d.units {
		all, err := im.lines.instancesOf(ctx, d, u)
		if err != nil {
			return nil, err
		}
		for _, i := range all {
			if i.is(name) {
				found = append(found, i)
				symbols[i.called()] = true
			}
		}
	}
	switch {
	case len(found) == 0:
		return nil, nil
	case len(symbols) > 1:
		return nil, &CodeError{name, 0, fmt.Sprintf("%d inlined functions have this name, use a symbol", len(symbols))}
	}
	r := newLineMaker(ctx, im, "").inlined(found)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	im.innerLines.enter(key, []sir.Region{r})
	return &r, nil
}

// instancesIn returns the functions that are inlined into a function, as regions without ids.
func (im *Image) instancesIn(ctx context.Context, f symbol, t *tree) (list []sir.Region, err error) {
	if im.lines.data == nil {
		return nil, nil
	}
	d, err := im.lines.data.get(ctx)
	if d == nil {
		return nil, err
	}
	m := newLineMaker(ctx, im, "")
	var wrong error
	for _, u := range d.unitsAt(f.addr) {
		all, err := im.lines.instancesOf(ctx, d, u)
		if err != nil {
			return nil, ctx.Err() // loops and calls are known nevertheless
		}
		i, _ := slices.BinarySearchFunc(all, f.addr, func(i instance, a uint64) int { return cmp.Compare(i.low(), a) })
		for ; i < len(all) && all[i].low()-f.addr < f.size; i++ {
			if len(list) == 0 {
				_, wrong = m.enter(f, t)
			}
			list = append(list, m.leaf(&all[i], wrong))
		}
	}
	return list, ctx.Err()
}

// low returns the first address of the instance, 0 if it has no code.
func (i *instance) low() uint64 {
	if len(i.ranges) == 0 {
		return 0
	}
	return i.ranges[0].low
}

// leaf returns an instance as a region without an id. wrong says why nothing in its function is counted.
func (m *lineMaker) leaf(i *instance, wrong error) sir.Region {
	c := &sir.Code{}
	if wrong == nil {
		c, _ = m.instance(i)
	} else {
		c.Uncounted = wrong.Error()
	}
	c.Callee, c.Column, c.EndLine = i.name, i.call.column, i.call.line
	if i.symbol != "" {
		c.Callee = m.im.sourceName(i.symbol)
	}
	r := sir.Region{Name: "inlined." + i.called(), Kind: sir.Inlined, File: i.call.file, Line: i.call.line, Code: c}
	finish(&r)
	r.Entry = cmp.Or(r.Entry, i.low())
	return r
}

// source returns the name of the inlined function in the source.
func (i *instance) source() string {
	if i.symbol == "" {
		return i.name
	}
	return sourceName(i.symbol)
}

// is reports whether the inlined function has a name.
func (i *instance) is(name string) bool {
	if i.symbol == "" {
		return i.name == name
	}
	source := sourceName(i.symbol)
	before, _, _ := strings.Cut(source, "(")
	return i.symbol == name || source == name || before == name || i.name == name
}

// inlined returns the region of all instances of one function.
func (m *lineMaker) inlined(all []instance) sir.Region {
	r := sir.Region{Kind: sir.Inlined, Symbol: all[0].called(), Name: all[0].source(), Code: &sir.Code{}}
	r.ID = m.im.base() + ":" + r.Symbol
	r.Code.Callee = r.Name
	var into, failed []string
	for i := range all {
		c, where := m.instance(&all[i])
		if !slices.Contains(into, where) {
			into = append(into, where)
		}
		if c.Uncounted != "" {
			failed = append(failed, fmt.Sprintf("in %s %s", where, c.Uncounted))
		}
		join(r.Code, c)
	}
	if len(failed) > 0 {
		const most = 3
		r.Code.Uncounted = fmt.Sprintf("it is inlined into %s, at %d places, and cannot be counted at %d of them: %s", strings.Join(into[:min(len(into), 8)], ", "), len(all), len(failed), strings.Join(failed[:min(len(failed), most)], "; "))
	}
	finish(&r)
	return r
}

// instance returns the code of one instance, and the name of the function that it is in.
func (m *lineMaker) instance(i *instance) (*sir.Code, string) {
	if len(i.ranges) == 0 {
		return &sir.Code{Uncounted: "no code is left"}, "a function"
	}
	f, ok := m.im.find(i.ranges[0].low)
	where := m.im.sourceName(coldSuffix.ReplaceAllString(f.name, ""))
	if !ok {
		return &sir.Code{Uncounted: "its code belongs to no function"}, "a function"
	}
	o, _, err := m.split([]lineRow{{low: i.ranges[0].low, high: i.ranges[0].end}})
	switch {
	case err != nil:
		return &sir.Code{Uncounted: err.Error()}, where
	case o == nil:
		return &sir.Code{}, where // control never reaches it
	}
	return o.instance(i), where
}

// instance returns the code of an inlined function. Its statements are those in its ranges. Only gcc keeps
// the order of statements. Go does not copy code, so that a block has one execution at most. With other compilers,
// pieces of one execution look like several executions, which is refused.
func (o *owner) instance(i *instance) *sir.Code {
	marks, err := o.marks(func(s statement) bool { return i.holds(s.addr) })
	if err != nil {
		return &sir.Code{Uncounted: err.Error()}
	}
	for n := range marks {
		marks[n].region = marks[n].last
	}
	if n := numberAt(o.parts, i.entry); n >= 0 {
		marks[n] = mark{true, true, i.holds(i.entry)}
	}
	if err := o.divide(i.entry); err != nil {
		return &sir.Code{Uncounted: err.Error()}
	}
	p := o.newPart(marks, !strings.HasPrefix(o.producer, "Go "))
	if !slices.Contains(p.in, true) {
		return &sir.Code{Uncounted: "no statement of it begins there"}
	}
	c := p.region()
	several := slices.ContainsFunc(c.Enter, func(e sir.Edge) bool { return e.To != c.Enter[0].To })
	if !strings.HasPrefix(o.producer, "GNU ") && (p.most > 1 || several) {
		c.Uncounted = cmp.Or(c.Uncounted, "its code is in pieces, and which of them begin an execution is not known")
	}
	if c.Uncounted == "" {
		c.Uncounted = p.multiplied(i)
	}
	return c
}

// multiplied says why one execution of an instance's code may stand for several of the source: the compiler
// unrolled a loop around the instance, and says of the copies only which function they are from, or it made
// vector instructions of several executions.
func (p *part) multiplied(i *instance) string {
	seen := map[operation]bool{}
	type copied struct {
		operation
		addr uint64
	}
	var others []copied
	for b := range p.Blocks {
		code := p.code(b)
		for n := range code {
			if !i.holds(code[n].addr) {
				continue
			}
			inst := p.whole(&code[n])
			switch {
			case vectorised(inst):
				return fmt.Sprintf("the vector instruction at %#x may execute it several times", code[n].addr)
			case p.in[b]:
				seen[operationOf(inst)] = true
			default:
				others = append(others, copied{operationOf(inst), code[n].addr})
			}
		}
	}
	for _, o := range others {
		switch {
		case o.operation == operation{}:
		case seen[o.operation]:
			return fmt.Sprintf("the code at %#x may be a copy of it, in which no statement begins", o.addr)
		default:
			seen[o.operation] = true
		}
	}
	return ""
}

// operation describes what an instruction does, apart from the registers. It is zero for one that only moves data
// between registers, or control.
type operation struct {
	op        x86asm.Op
	operands  [4]byte // 'i': an immediate value, 'm': in memory, 'r': in a register
	immediate [2]x86asm.Imm
}

func operationOf(inst x86asm.Inst) (o operation) {
	if inst.Op == x86asm.NOP || isJump(inst.Op) {
		return o
	}
	o.op = inst.Op
	values := 0
	for n, a := range inst.Args {
		switch a := a.(type) {
		case x86asm.Imm:
			o.operands[n] = 'i'
			o.immediate[min(values, 1)] = a
			values++
		case x86asm.Mem:
			o.operands[n] = 'm'
		case x86asm.Reg:
			o.operands[n] = 'r'
		}
	}
	if o.op == x86asm.MOV && o.operands == [4]byte{'r', 'r'} {
		return operation{}
	}
	return o
}

// vectorised reports whether an instruction computes several values at once, or is not known.
func vectorised(inst x86asm.Inst) bool {
	if inst.Op == 0 {
		return true
	}
	name := inst.Op.String()
	vector := false
	for _, a := range inst.Args {
		r, ok := a.(x86asm.Reg)
		vector = vector || ok && r >= x86asm.X0 && r <= x86asm.X15
	}
	return vector && (strings.HasPrefix(name, "P") || strings.HasSuffix(name, "PS") || strings.HasSuffix(name, "PD"))
}
