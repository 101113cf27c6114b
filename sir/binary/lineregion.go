package binary

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"

	"mirador/sir"
)

// Line returns a line of the source as a region, whose id is PROGRAM:FILE:LINE. An execution begins
// each time control comes to the beginning of a statement of the line from another line, in any function: a line
// of an inlined function has code in each function that it is inlined into. It ends where a statement of another
// line begins, as for the command step of a debugger. A loop that is on one line has an execution for each iteration.
//
// file is the path of a file, or the end of its path after a slash. The error is a *sir.LineError if
// the program has no code of the line, or that of ctx. Callers share the region and must not modify it.
func (im *Image) Line(ctx context.Context, file string, line int) (*sir.Region, error) {
	key := fmt.Sprintf("%s:%d", file, line)
	if known, ok := im.innerLines.find(key); ok {
		return &known[0], nil
	}
	f, err := im.sourceFile(ctx, file)
	if err != nil {
		return nil, err
	}
	if !f.statements(line) {
		return nil, &sir.LineError{Program: im.name, File: file, Line: line, Near: f.near(line)}
	}
	m := newLineMaker(ctx, im, file)
	r := m.region(f, line)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	im.innerLines.enter(key, []sir.Region{r})
	return &r, nil
}

// Lines returns all lines of a file that have code, in their order. See Line.
func (im *Image) Lines(ctx context.Context, file string) (list []sir.Region, err error) {
	f, err := im.sourceFile(ctx, file)
	if err != nil {
		return nil, err
	}
	m := newLineMaker(ctx, im, file)
	for line := range f.lines {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if f.statements(line) {
			list = append(list, m.region(f, line))
		}
	}
	slices.SortFunc(list, func(a, b sir.Region) int { return cmp.Compare(a.Line, b.Line) })
	return list, nil
}

// lineMaker makes the regions of lines of one file.
type lineMaker struct {
	ctx    context.Context
	im     *Image
	file   string // as the user named it
	owners map[uint64]*owner
	every  bool // statements begin at each row of the table of LLVM, which marks only the first of a line
}

func newLineMaker(ctx context.Context, im *Image, file string) *lineMaker {
	return &lineMaker{ctx: ctx, im: im, file: file, owners: map[uint64]*owner{}}
}

func (m *lineMaker) region(f *sourceFile, line int) sir.Region {
	r := sir.Region{Kind: sir.Line, File: f.path, Line: line, Code: &sir.Code{EndLine: line}}
	r.Name = path.Base(f.path) + ":" + strconv.Itoa(line)
	r.ID = fmt.Sprintf("%s:%s:%d", m.im.name, m.file, line)
	c := r.Code
	for rows := sortRows(f.lines[line]); len(rows) > 0; {
		owner, rest, err := m.split(rows)
		rows = rest
		switch {
		case err != nil:
			c.Uncounted = cmp.Or(c.Uncounted, err.Error())
		case owner != nil:
			join(c, owner.line(sourceLine{f.path, line}))
		}
	}
	finish(&r)
	return r
}

// finish completes a region whose code in all functions is known.
func finish(r *sir.Region) {
	c := r.Code
	if c.Uncounted == "" && len(c.Entries) == 0 {
		c.Uncounted = "control never reaches its code"
	}
	if c.Untimed = cmp.Or(c.Uncounted, c.Untimed); c.Untimed != "" {
		c.Exits, c.SharedExits = nil, false
	}
	if c.Uncounted != "" {
		c.Entries, c.When = nil, nil
	}
	slices.Sort(c.Entries)
	slices.Sort(c.Exits)
	for i := 1; i < len(c.Entries); i++ {
		if c.Entries[i] == c.Entries[i-1] {
			c.Untimed, c.Exits, c.SharedExits = fmt.Sprintf("two executions begin at %#x", c.Entries[i]), nil, false
		}
	}
	for _, piece := range c.Ranges {
		r.Size += piece.High - piece.Low
	}
	if len(c.Ranges) > 0 {
		r.Entry = slices.MinFunc(c.Ranges, func(a, b sir.Range) int { return cmp.Compare(a.Low, b.Low) }).Low
	}
}

// join adds the code of a region in one function to that in others.
func join(c, more *sir.Code) {
	c.Ranges, c.Enter, c.Leave = append(c.Ranges, more.Ranges...), append(c.Enter, more.Enter...), append(c.Leave, more.Leave...)
	c.Entries, c.Exits = append(c.Entries, more.Entries...), append(c.Exits, more.Exits...)
	for at, when := range more.When {
		if c.When == nil {
			c.When = map[uint64]sir.Condition{}
		}
		c.When[at] = when
	}
	c.Uncounted, c.Untimed = cmp.Or(c.Uncounted, more.Uncounted), cmp.Or(c.Untimed, more.Untimed)
	c.SharedExits = c.SharedExits || more.SharedExits
}

// owner is a function that contains code of a line.
type owner struct {
	*tree
	divided    *tree // each statement has blocks of its own; see divide
	f          symbol
	statements []statement
	numbers    []int           // of the instructions at which they begin, -1 for none
	marked     []mark          // memory for marks
	flags      []bool          // memory for a part
	operations []operation     // of instructions, as far as they are known
	misfits    map[uint64]bool // addresses of statements that are inside instructions
	producer   string          // the compiler
	// behind is the first instruction behind the code with which a function of Go begins again after it
	// has grown its stack. Without such code it is the function's entry.
	behind uint64
}

// owner analyses a function.
func (m *lineMaker) owner(f symbol) (*owner, error) {
	if known := m.owners[f.addr]; known != nil {
		return known, nil
	}
	t, err := m.im.tree(f)
	if err != nil {
		return nil, err
	}
	return m.enter(f, t)
}

// enter adds a function that is analysed.
func (m *lineMaker) enter(f symbol, t *tree) (o *owner, err error) {
	o = &owner{tree: t, f: f}
	if o.behind, err = m.im.entered(&sir.Region{Name: f.name, Entry: f.addr}); err != nil {
		return nil, err
	}
	o.producer = m.im.lines.producer(m.ctx, f.addr)
	if o.statements, err = m.statements(t, m.every && isLLVM(o.producer)); err != nil {
		return nil, err
	}
	o.fit()
	m.owners[f.addr] = o
	return o, nil
}

// split finds the function that the first row belongs to, and returns the rows of other functions. There
// is no function if control never reaches the code.
func (m *lineMaker) split(rows []lineRow) (_ *owner, rest []lineRow, _ error) {
	low := rows[0].low
	if !m.im.whole.executable(low) {
		return nil, rows[1:], nil
	}
	for _, f := range m.im.owners(low) {
		o, err := m.owner(f)
		if err != nil {
			return nil, rows[1:], err
		}
		if o.covers(low) {
			return o, slices.DeleteFunc(rows, func(r lineRow) bool { return o.covers(r.low) }), nil
		}
	}
	if f, ok := m.im.find(low); ok && !isCold(f.name) || m.im.onlyPadding(rows[0]) {
		return nil, rows[1:], nil
	}
	return nil, rows[1:], fmt.Errorf("no function is known to which its code at %#x belongs", low)
}

// owners returns the functions to which code may belong.
func (im *Image) owners(addr uint64) (list []symbol) {
	f, ok := im.find(addr)
	whole := withoutCold(f.name)
	switch {
	case !ok:
	case whole == f.name:
		return []symbol{f}
	default:
		for _, g := range im.funcs {
			if g.name == whole {
				list = append(list, g)
			}
		}
	}
	return list
}

// onlyPadding reports whether the code of a row, between functions, has no purpose.
func (im *Image) onlyPadding(r lineRow) bool {
	code, err := im.code(r.low, r.high-r.low)
	for err == nil && len(code) > 0 {
		inst, ok := decodeInstruction(code)
		if !ok || !isPadding(inst) {
			return false
		}
		code = code[inst.Len:]
	}
	return err == nil
}

// covers reports whether an address belongs to an instruction of the function.
func (t *tree) covers(addr uint64) bool {
	return t.instAt(addr) >= 0
}

// line returns the code of a line in the function. It is empty if no statement of the line begins there.
func (o *owner) line(at sourceLine) *sir.Code {
	marks, err := o.marks(func(s statement) bool { return s.sourceLine == at })
	if err != nil {
		return &sir.Code{Uncounted: err.Error()}
	}
	if err := o.divide(); err != nil {
		return &sir.Code{Uncounted: err.Error()}
	}
	p := o.newPart(marks, false)
	if !slices.Contains(p.in, true) {
		return &sir.Code{}
	}
	c, err := p.regionOfLine()
	if err != nil {
		return &sir.Code{Uncounted: err.Error()}
	}
	return c
}

// marks returns for each instruction whether statements begin there, and which of them are of a region. It is valid until the
// next call.
func (o *owner) marks(is func(statement) bool) ([]mark, error) {
	if o.marked == nil {
		o.marked = make([]mark, len(o.insts))
	}
	marks := o.marked
	clear(marks)
	var before mark // statements in the code with which a function of Go begins again
	for n, s := range o.statements {
		own := is(s)
		switch {
		case own && len(o.misfits) > 0 && o.misfits[s.addr]:
			return nil, fmt.Errorf("the line table does not fit the code: %#x is inside an instruction", s.addr)
		case len(o.misfits) > 0 && o.misfits[s.addr]:
		case o.f.addr <= s.addr && s.addr < o.behind:
			before.region = before.region || own
		default:
			m := &marks[o.numbers[n]]
			*m = mark{true, m.region || own, own}
		}
	}
	if n := numberAt(o.parts, o.behind); before.region && n >= 0 {
		m := marks[n]
		marks[n] = mark{true, true, m.last || !m.any}
	}
	return marks, nil
}

// fit removes the statements in code that control does not reach, and in the calls of the runtime that make the
// stack of a function of Go larger. It finds those inside instructions.
func (o *owner) fit() {
	grows := []piece{}
	for b := range o.Blocks {
		if code := o.code(b); slices.Contains(growing, code[len(code)-1].callee) {
			grows = append(grows, piece{o.Blocks[b].Start, o.Blocks[b].End})
		}
	}
	o.misfits = map[uint64]bool{}
	kept := o.statements[:0]
	o.numbers = make([]int, 0, len(o.statements))
	for _, s := range o.statements {
		if !o.covers(s.addr) || coveredBy(grows, s.addr) > 0 {
			continue
		}
		n := numberAt(o.parts, s.addr)
		if n < 0 {
			o.misfits[s.addr] = true
		}
		kept, o.numbers = append(kept, s), append(o.numbers, n)
	}
	o.statements = kept
}

// begins reports whether an instruction of the function is at an address.
func (t *tree) begins(addr uint64) bool {
	return numberAt(t.parts, addr) >= 0
}
