package binary

import (
	"cmp"
	"context"
	"debug/dwarf"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/arch/x86/x86asm"

	"mirador/sir"
	"mirador/sir/safedwarf"
)

// instance is a place where a function is inlined.
type instance struct {
	*sourceFunction
	ranges []piece
	entry  uint64 // where it begins, 0 if the compiler does not say it; gcc may leave it out of the ranges
	call   position
}

// sourceFunction is a function of the source.
type sourceFunction struct {
	name, symbol string   // the symbol is "" in languages without linkage names
	declared     position // without a column
	column       int      // of the declaration
	external     bool     // another unit may call it
	inlined      bool     // the compiler may have inlined it in this unit
}

// definition is code of a function that is not inlined: its own, or a version of it for certain arguments.
type definition struct {
	*sourceFunction
	entry uint64
	// variables counts those in it, and moved those that are not always at one place of its stack.
	variables, moved int
	calls            bool // all its calls are described: LLVM says so of what it optimises
}

// unitCode has the code of the functions of a compile unit.
type unitCode struct {
	instances   []instance   // in the order of their addresses
	definitions []definition // in the order of their addresses
}

// mostInstances limits the instances and definitions of one program, and their ranges. Large programs have about 500,000.
const mostInstances = 4 << 20

// mostComparisons limits the comparisons of the instructions of a function with the instances in it: 3,000 instances
// in a function of 20,000 instructions.
const mostComparisons = 1 << 26

var errLargeFunction = errors.New("too many functions are inlined into a large one")

var errManyInstances = errors.New("the debug information has too many inlined functions")

// holds reports whether an instruction belongs to the instance.
func (i *instance) holds(addr uint64) bool { return coveredBy(i.ranges, addr) > 0 }

// called returns the name with which ids and callers name the function.
func (o *sourceFunction) called() string { return cmp.Or(o.symbol, o.name) }

// codeOf returns the code of the functions of a compile unit.
func (t *lineTable) codeOf(ctx context.Context, d *lineData, u compileUnit) (*unitCode, error) {
	if known, ok := t.inlined.Load(u.First); ok {
		return known.(*unitCode), nil
	}
	w := inlinedWalk{d: d, ctx: ctx, unit: u, origins: map[dwarf.Offset]*sourceFunction{}, files: map[int]string{}, count: &t.instances}
	_ = guard("", w.read) // what a damaged unit has before the damage
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case t.instances.Load() > mostInstances:
		return nil, errManyInstances
	}
	slices.SortStableFunc(w.found.instances, func(a, b instance) int { return cmp.Compare(a.low(), b.low()) })
	slices.SortStableFunc(w.found.definitions, func(a, b definition) int { return cmp.Compare(a.entry, b.entry) })
	t.inlined.Store(u.First, &w.found)
	return &w.found, nil
}

// inlinedWalk reads the code of the functions of one compile unit.
type inlinedWalk struct {
	d       *lineData
	ctx     context.Context
	unit    compileUnit
	lines   *safedwarf.Lines
	files   map[int]string
	scan    *safedwarf.Scan
	ranges  [][2]uint64 // of the last entry
	pieces  []piece     // memory for ranges of instances
	origins map[dwarf.Offset]*sourceFunction
	found   unitCode
	count   *atomic.Int64 // instances, definitions and ranges of the program
}

func (w *inlinedWalk) read() (err error) {
	if w.lines, err = w.d.lines(w.ctx, w.unit); err != nil {
		return err
	}
	if w.scan, err = w.d.dwarf.Scan(w.ctx, w.unit.Unit); err != nil {
		return err
	}
	depth, inside := 0, 0 // inside is the depth of the current definition, and 1
	for w.count.Load() <= mostInstances {
		if more, err := w.scan.Next(); err != nil || !more {
			return err
		}
		children := w.scan.Children
		switch w.scan.Tag {
		case 0: // a damaged unit may have no end but this
			depth--
		case dwarf.TagInlinedSubroutine:
			w.add()
		case dwarf.TagSubprogram:
			inside = 0
			if w.define() {
				inside = depth + 1
			}
		case dwarf.TagVariable, dwarf.TagFormalParameter:
			if inside > 0 && depth >= inside {
				w.found.definitions[len(w.found.definitions)-1].add(w.scan)
			}
		}
		if children {
			depth++
		}
		if depth <= 0 {
			return nil
		}
	}
	return nil
}

// file returns the path of a file of the unit.
func (w *inlinedWalk) file(n int64) string {
	known, ok := w.files[int(n)]
	if !ok {
		known = printable(w.lines.File(int(n)))
		w.files[int(n)] = known
	}
	return known
}

func (w *inlinedWalk) add() {
	at, ok := w.scan.Ref(dwarf.AttrAbstractOrigin)
	if !ok {
		return
	}
	var err error
	w.ranges, err = w.scan.Ranges(w.ranges[:0])
	if w.count.Add(1 + int64(len(w.ranges))); err != nil {
		return
	}
	i := instance{sourceFunction: w.origin(at, 0)}
	if i.sourceFunction == nil || i.called() == "" {
		return
	}
	i.entry, _ = w.scan.Addr(dwarf.AttrEntrypc)
	from := len(w.pieces)
	for _, r := range w.ranges {
		if r[0] < r[1] && r[0] != 0 {
			w.pieces = append(w.pieces, piece{r[0], r[1]})
		}
	}
	i.ranges = w.pieces[from:len(w.pieces):len(w.pieces)]
	line, _ := w.scan.Int(dwarf.AttrCallLine)
	column, _ := w.scan.Int(dwarf.AttrCallColumn)
	if file, ok := w.scan.Int(dwarf.AttrCallFile); ok && w.lines != nil && line > 0 {
		i.call = position{w.file(file), int(line), int(max(column, 0))}
	}
	if i.continues() {
		return
	}
	w.found.instances = append(w.found.instances, i)
}

// continues reports whether the instance is the rest of an execution that has begun elsewhere: gcc splits a function of
// which it may inline only the beginning, and inlines the rest again where that is small. Such a call is where the
// function is declared.
func (i *instance) continues() bool {
	declared := i.declared
	declared.column = i.column
	return i.column > 0 && i.call == declared
}

// define adds the code of a function that is not inlined. What was inlined or cloned elsewhere too has another
// entry, to which this one refers.
func (w *inlinedWalk) define() bool {
	entry, ok := entryOf(w.scan)
	if !ok {
		return false
	}
	w.count.Add(1)
	calls := w.scan.Has(dwarf.AttrCallAllCalls) || w.scan.Has(safedwarf.AttrGNUAllCalls)
	at, refers := w.scan.Ref(dwarf.AttrAbstractOrigin)
	if !refers {
		at = w.scan.Offset
	}
	o := w.origin(at, 0)
	if o == nil || o.called() == "" {
		return false
	}
	w.found.definitions = append(w.found.definitions, definition{sourceFunction: o, entry: entry, calls: calls})
	return true
}

// add counts a variable of the function.
func (d *definition) add(e *safedwarf.Scan) {
	const fbreg, addr = 0x91, 0x03
	at, ok := e.Block(dwarf.AttrLocation)
	switch {
	case ok && len(at) > 0 && at[0] == addr: // it is static
	case ok && len(at) > 0 && at[0] == fbreg:
		d.variables++
	default:
		d.variables++
		d.moved++
	}
}

// unoptimised reports whether the compiler certainly did not optimise a function: it keeps variables at one place of the
// stack only then. gcc says it for a whole unit.
func unoptimised(producer string, of *definition) bool {
	if strings.HasPrefix(producer, "GNU ") {
		return strings.Contains(producer, " -m") && !optimising.MatchString(producer) && (of == nil || of.moved == 0)
	}
	return of != nil && of.variables > 0 && of.moved == 0 && !of.calls
}

// optimising matches the options of gcc that optimise.
var optimising = regexp.MustCompile(` -O([^0 ]|\b *$| )`)

// entryOf returns the address at which the function of an entry begins. A function in several parts has ranges;
// the first one contains the beginning.
func entryOf(e *safedwarf.Scan) (uint64, bool) {
	if low, ok := e.Addr(dwarf.AttrLowpc); ok {
		return low, true
	}
	if !e.Has(dwarf.AttrRanges) {
		return 0, false
	}
	ranges, err := e.Ranges(nil)
	if err != nil || len(ranges) == 0 {
		return 0, false
	}
	return ranges[0][0], true
}

// origin returns the function that an entry describes, nil if the entry is damaged.
func (w *inlinedWalk) origin(at dwarf.Offset, depth int) *sourceFunction {
	const deepest = 4
	if known, ok := w.origins[at]; ok || depth == deepest {
		return known
	}
	e := *w.scan // which goes on where it is
	if e.Seek(at) != nil {
		return nil
	}
	if more, err := e.Next(); err != nil || !more {
		return nil
	}
	o := &sourceFunction{}
	for _, link := range []dwarf.Attr{dwarf.AttrSpecification, dwarf.AttrAbstractOrigin} {
		if next, ok := e.Ref(link); ok {
			if more := w.origin(next, depth+1); more != nil {
				*o = *more
			}
		}
	}
	text := func(a dwarf.Attr, before string) string { return cmp.Or(printable(string(e.Text(a))), before) }
	o.name, o.symbol = text(dwarf.AttrName, o.name), text(dwarf.AttrLinkageName, o.symbol)
	if line, ok := e.Int(dwarf.AttrDeclLine); ok {
		o.declared.line = int(line)
	}
	if column, ok := e.Int(dwarf.AttrDeclColumn); ok {
		o.column = int(column)
	}
	if file, ok := e.Int(dwarf.AttrDeclFile); ok && w.lines != nil && w.unit.First <= at && at < w.unit.End {
		o.declared.file = w.file(file)
	}
	how, _ := e.Int(dwarf.AttrInline)
	o.external, o.inlined = o.external || e.Flag(dwarf.AttrExternal), o.inlined || how == inlFunction || how == inlDeclared
	w.origins[at] = o
	return o
}

// Values of DW_AT_inline of functions that the compiler has inlined.
const inlFunction, inlDeclared = 1, 3

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
		all, err := im.lines.codeOf(ctx, d, u)
		if err != nil {
			return nil, err
		}
		for _, i := range all.instances {
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
		code, err := im.lines.codeOf(ctx, d, u)
		if err != nil {
			return nil, ctx.Err() // loops and calls are known nevertheless
		}
		all := code.instances
		i, _ := slices.BinarySearchFunc(all, f.addr, func(i instance, a uint64) int { return cmp.Compare(i.low(), a) })
		for ; i < len(all) && all[i].low()-f.addr < f.size; i++ {
			switch {
			case len(list) == 0:
				_, wrong = m.enter(f, t)
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case len(list)*len(t.insts) > mostComparisons:
				wrong = errLargeFunction
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
		c = m.instance(i)
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

// source returns the name of the function in the source.
func (o *sourceFunction) source() string {
	if o.symbol == "" {
		return o.name
	}
	return sourceName(o.symbol)
}

// is reports whether the function has a name.
func (o *sourceFunction) is(name string) bool {
	if o.symbol == "" {
		return o.name == name
	}
	source := sourceName(o.symbol)
	before, _, _ := strings.Cut(source, "(")
	return o.symbol == name || source == name || before == name || o.name == name
}

// inlined returns the region of all instances of one function.
func (m *lineMaker) inlined(all []instance) sir.Region {
	r := sir.Region{Kind: sir.Inlined, Symbol: all[0].called(), Name: all[0].source(), Code: m.joined(all)}
	r.ID = m.im.name + ":" + r.Symbol
	r.Code.Callee = r.Name
	finish(&r)
	return r
}

// joined returns the code of all instances of one function.
func (m *lineMaker) joined(all []instance) *sir.Code {
	joined := &sir.Code{}
	var into, failed []string
	for i := range all {
		c, where := m.instance(&all[i]), m.place(&all[i])
		if !slices.Contains(into, where) {
			into = append(into, where)
		}
		if c.Uncounted != "" {
			failed = append(failed, fmt.Sprintf("in %s %s", where, c.Uncounted))
		}
		join(joined, c)
	}
	if len(failed) > 0 {
		const most = 3
		joined.Uncounted = fmt.Sprintf("it is inlined into %s, at %d places, and cannot be counted at %d of them: %s", strings.Join(into[:min(len(into), 8)], ", "), len(all), len(failed), strings.Join(failed[:min(len(failed), most)], "; "))
	}
	if selfInlined(all) {
		joined.Untimed = cmp.Or(joined.Untimed, "it is inlined into itself, where the stack pointer does not tell its executions apart")
	}
	return joined
}

// selfInlined reports whether some instances are inside others.
func selfInlined(all []instance) bool {
	var ranges []piece
	for i := range all {
		ranges = append(ranges, all[i].ranges...)
	}
	slices.SortFunc(ranges, func(a, b piece) int { return cmp.Compare(a.low, b.low) })
	for i := 1; i < len(ranges); i++ {
		if ranges[i].low < ranges[i-1].end {
			return true
		}
	}
	return false
}

// place returns the name of the function that an instance is in.
func (m *lineMaker) place(i *instance) string {
	f, ok := m.im.find(i.low())
	if len(i.ranges) == 0 || !ok {
		return "a function"
	}
	return m.im.sourceName(withoutCold(f.name))
}

// instance returns the code of one instance.
func (m *lineMaker) instance(i *instance) *sir.Code {
	if len(i.ranges) == 0 {
		return &sir.Code{Uncounted: "no code is left"}
	}
	if _, ok := m.im.find(i.ranges[0].low); !ok {
		return &sir.Code{Uncounted: "its code belongs to no function"}
	}
	o, _, err := m.split([]lineRow{{low: i.ranges[0].low, high: i.ranges[0].end}})
	switch {
	case err != nil:
		return &sir.Code{Uncounted: err.Error()}
	case o == nil:
		return &sir.Code{} // control never reaches it
	}
	return o.instance(i)
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
		c.Uncounted = o.multiplied(p, i)
	}
	return c
}

// multiplied says why one execution of an instance's code may stand for several of the source: the compiler
// unrolled a loop around the instance, and says of the copies only which function they are from, or it made
// vector instructions of several executions.
func (o *owner) multiplied(p *part, i *instance) string {
	var begun, others []int        // instructions in the region, and in the rest of the instance's code
	all := piece{i.low(), i.low()} // the code up to the end of the last range
	for _, r := range i.ranges {
		all = piece{min(all.low, r.low), max(all.end, r.end)}
	}
	for b := range p.Blocks {
		if p.Blocks[b].End <= all.low || p.Blocks[b].Start >= all.end {
			continue
		}
		for n := p.pieces[b].from; n < p.pieces[b].to; n++ {
			switch addr := p.insts[n].addr; {
			case !i.holds(addr):
			case o.isVector(n):
				return fmt.Sprintf("the vector instruction at %#x may execute it several times", addr)
			case p.in[b]:
				begun = append(begun, n)
			default:
				others = append(others, n)
			}
		}
	}
	return o.copied(begun, others)
}

// copied says which instructions may be copies of some, or of each other.
func (o *owner) copied(of, others []int) string {
	if len(others) == 0 {
		return ""
	}
	seen := map[operation]bool{}
	for _, n := range of {
		seen[o.operation(n)] = true
	}
	for _, n := range others {
		switch does := o.operation(n); {
		case does.op == 0:
		case seen[does]:
			return fmt.Sprintf("the code at %#x may be a copy of it, in which no statement begins", o.insts[n].addr)
		default:
			seen[does] = true
		}
	}
	return ""
}

// isVector reports whether an instruction computes several values at once, or is not known. Most need not be decoded for it.
func (o *owner) isVector(n int) bool {
	p := partOf(o.parts, o.insts[n].addr)
	return !isScalar(p.code[o.insts[n].addr-p.low:]) && o.operation(n).vector
}

// isScalar reports whether an instruction obviously uses no vector registers: it has one of the usual opcodes.
func isScalar(code []byte) bool {
	at := 0
	if code[at]&0xf0 == 0x40 { // REX
		at++
	}
	switch {
	case at+1 >= len(code):
		return at < len(code) && strings.IndexByte(".px", firstMap[code[at]]) < 0
	case code[at] != 0x0f:
		return strings.IndexByte(".px", firstMap[code[at]]) < 0
	}
	switch op := code[at+1]; {
	case op>>4 == 4, op>>4 == 8, op>>4 == 9: // CMOVcc, Jcc, SETcc
		return true
	default:
		return op == 0xaf || op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf || op == 0x1f // IMUL, MOVZX, MOVSX, NOP
	}
}

// operation returns what an instruction does. Instances may be inside others, and share instructions.
func (o *owner) operation(n int) operation {
	if o.operations == nil {
		o.operations = make([]operation, len(o.insts))
	}
	if !o.operations[n].known {
		inst := o.whole(&o.insts[n])
		o.operations[n] = operationOf(inst)
		o.operations[n].known, o.operations[n].vector = true, vectorised(inst)
	}
	return o.operations[n]
}

// operation describes what an instruction does, apart from the registers. Its op is 0 if it only moves data
// between registers, or control.
type operation struct {
	op        x86asm.Op
	known     bool
	vector    bool
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
