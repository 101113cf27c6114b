package binary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"mirador/sir"
	"mirador/sir/flow"
)

// Inside returns the loops and calls of a function as a tree of regions.
//
// The id of a region is the id of the region around it, "/", and a name: loop1, loop2 … in the
// order of the source lines, body for the iterations of a loop, and call.SYMBOL for a call. Of
// several calls of a symbol the second one has the suffix ~2. A copy that the compiler made of a
// loop has the name of the loop with such a suffix.
//
// Callers share the regions and must not modify them. The error is a *CodeError if the code is
// not understood, or the error of ctx.
func (im *Image) Inside(ctx context.Context, unit *sir.Region) ([]sir.Region, error) {
	f, ok := im.find(unit.Entry)
	if unit.Kind != sir.Function || !ok || f.addr != unit.Entry {
		return nil, &CodeError{unit.Name, unit.Entry, "no function of " + im.name + " begins"}
	}
	if known, ok := im.inner.find(f.addr); ok {
		return known, nil
	}
	found, err := im.inside(ctx, f, unit)
	if err == nil {
		im.inner.enter(f.addr, found)
	}
	return found, err
}

func (im *Image) inside(ctx context.Context, f symbol, unit *sir.Region) ([]sir.Region, error) {
	t, err := im.tree(f)
	if err != nil {
		return nil, err
	}
	defer keep(&keptInstructions, t.insts) // no region refers to them
	defer func() { keep(&keptPositions, t.places); keep(&keptDepths, t.depth) }()
	if t.places, err = im.lines.positions(ctx, t.insts); err != nil {
		return nil, err
	}
	if err := t.compiled(ctx, f); err != nil {
		return nil, err
	}
	inlined, err := im.instancesIn(ctx, f, t)
	if err != nil {
		return nil, err
	}
	t.inlined = inlined
	return t.regions(unit.ID, inlined), nil
}

// compiled finds how a function was compiled, and where its statements begin.
func (t *tree) compiled(ctx context.Context, f symbol) error {
	im := t.im
	producer := im.lines.producer(ctx, f.addr)
	t.llvm, t.fortran = isLLVM(producer), strings.HasPrefix(producer, "GNU Fortran")
	t.option = optionOf(producer)
	t.rust, t.golang = strings.Contains(producer, "rustc"), strings.HasPrefix(producer, "Go ")
	if im.lines.data == nil || !t.llvm && !strings.HasPrefix(producer, "GNU ") { // other compilers copy hardly any code
		return nil
	}
	d, err := im.lines.data.get(ctx)
	if d == nil {
		return err
	}
	of, _ := im.described(ctx, d, f.addr) // without it the function may be optimised
	if t.plain = unoptimised(producer, of); t.plain || len(t.loops) == 0 {
		return ctx.Err()
	}
	statements, err := newLineMaker(ctx, im, "").statements(t, false)
	if errors.Is(err, errManyRows) {
		return nil // as without them
	}
	t.where = t.placesOf(statements)
	return err
}

// tree analyses a function, without the positions of its instructions in the source.
func (im *Image) tree(f symbol) (*tree, error) {
	g, err := im.analyse(f)
	if err != nil {
		return nil, err
	}
	t := &tree{im: im, graph: g, depth: g.stackDepths()}
	return t, t.order(f)
}

// order finds the loops and dominators of the graph.
func (t *tree) order(f symbol) (err error) {
	if t.loops, err = t.Loops(); err == nil {
		t.dom, err = t.Dominators()
	}
	if err != nil {
		return &CodeError{f.name, f.addr, err.Error()}
	}
	t.returns = t.returning()
	return nil
}

// innerCache keeps the regions that were asked for last, by the function that they are in or by their
// line: requests for a probe ask for the same region in each process.
type innerCache[K comparable] struct {
	mu    sync.Mutex
	known map[K][]sir.Region
}

const mostInner = 64

func (c *innerCache[K]) find(key K) ([]sir.Region, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.known[key]
	return found, ok
}

func (c *innerCache[K]) enter(key K, regions []sir.Region) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= mostInner || c.known == nil {
		c.known = map[K][]sir.Region{}
	}
	c.known[key] = regions
}

// tree makes the regions of one function.
type tree struct {
	im *Image
	*graph
	places  []position   // of instructions
	inlined []sir.Region // where functions are inlined
	loops   []flow.Loop
	dom     []int
	depth   []stackAt // before instructions
	returns []bool    // of blocks: whether the function may return from there
	llvm    bool      // LLVM compiled the function
	fortran bool      // gfortran did
	rust    bool      // rustc did
	golang  bool      // the compiler of Go did
	plain   bool      // the compiler did not optimise the function
	option  string    // see optionOf
	where   *places   // where statements begin in optimised code, nil if it is not known
}

// at returns the position of the instruction at an address.
func (t *tree) at(addr uint64) position { return t.places[numberAt(t.parts, addr)] }

// position is a place in the source. Its line is 0 if it is not known.
type position struct {
	file         string
	line, column int
}

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.column, q.column))
}

// regions returns all regions of the function with their ids.
func (t *tree) regions(id string, inlined []sir.Region) []sir.Region {
	inside := make([][]sir.Region, len(t.loops)+1) // of each loop; the last: outside of all loops
	slot := func(loop int) *[]sir.Region {
		if loop < 0 {
			loop = len(t.loops)
		}
		return &inside[loop]
	}
	innermost := t.innermost()
	isCall := func(i int) bool {
		callee := t.insts[i].callee
		return callee != "" && !slices.Contains(growing, callee)
	}
	t.makeRoom(inside, innermost, inlined, isCall)
	for b := range t.Blocks {
		for i := t.pieces[b].from; i < t.pieces[b].to; i++ {
			if isCall(i) {
				at := slot(innermost[b])
				*at = append(*at, t.call(b, i))
			}
		}
	}
	for _, r := range inlined {
		at := slot(t.loopAt(innermost, r.Entry))
		*at = append(*at, r)
	}
	for i := len(t.loops) - 1; i >= 0; i-- { // those inside first
		l := &loopRegion{tree: t, Loop: &t.loops[i]}
		r := l.region()
		r.Regions = append(l.body(), inside[i]...)
		at := slot(t.loops[i].Parent)
		*at = append(*at, r)
	}
	all := *slot(-1)
	name(all, id)
	return all
}

// makeRoom makes room for the regions of each loop, and of those outside of all loops. Regions are large.
func (t *tree) makeRoom(inside [][]sir.Region, innermost []int, inlined []sir.Region, isCall func(i int) bool) {
	counts := make([]int, len(inside))
	count := func(loop int) { counts[(loop+len(counts))%len(counts)]++ }
	for b := range t.Blocks {
		for i := t.pieces[b].from; i < t.pieces[b].to; i++ {
			if isCall(i) {
				count(innermost[b])
			}
		}
	}
	for i := range inlined {
		count(t.loopAt(innermost, inlined[i].Entry))
	}
	for i := range t.loops {
		count(t.loops[i].Parent)
	}
	for i, n := range counts {
		inside[i] = make([]sir.Region, 0, n)
	}
}

// loopAt returns the innermost loop with an instruction, -1 for none.
func (t *tree) loopAt(innermost []int, addr uint64) int {
	b := t.blockWith(addr)
	if b < 0 {
		return -1
	}
	return innermost[b]
}

// innermost returns the innermost loop of each block, -1 for none.
func (t *tree) innermost() []int {
	of := slices.Repeat([]int{-1}, len(t.Blocks))
	for i, l := range t.loops { // outer loops first
		for _, b := range l.Body {
			of[b] = i
		}
	}
	return of
}

// name orders regions by their lines, and sets their ids and those of the regions inside them.
func name(regions []sir.Region, parent string) {
	if len(regions) == 0 {
		return
	}
	inSourceOrder(regions)
	used := map[string]int{}
	loops := 0
	for i := range regions {
		r := &regions[i]
		if r.Kind == sir.Loop {
			if before := lastLoop(regions[:i]); before == nil || !sameSource(before, r) {
				loops++
			}
			r.Name = "loop" + strconv.Itoa(loops)
		}
		r.ID = parent + "/" + r.Name
		if used[r.ID]++; used[r.ID] > 1 {
			r.ID += "~" + strconv.Itoa(used[r.ID])
		}
		name(r.Regions, r.ID)
	}
}

// inSourceOrder sorts regions by their lines. Regions are large: their numbers are sorted.
func inSourceOrder(regions []sir.Region) {
	order := make([]int, len(regions))
	for i := range order {
		order[i] = i
	}
	compare := func(i, j int) int {
		a, b := &regions[i], &regions[j]
		return cmp.Or(falseFirst(a.Kind != sir.Body, b.Kind != sir.Body),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Code.Column, b.Code.Column), cmp.Compare(a.Entry, b.Entry))
	}
	if slices.IsSortedFunc(order, compare) {
		return
	}
	slices.SortStableFunc(order, compare)
	unsorted := slices.Clone(regions)
	for i, from := range order {
		regions[i] = unsorted[from]
	}
}

func lastLoop(regions []sir.Region) *sir.Region {
	for i := len(regions) - 1; i >= 0; i-- {
		if regions[i].Kind == sir.Loop {
			return &regions[i]
		}
	}
	return nil
}

// sameSource reports whether two loops were made from one loop of the source.
func sameSource(a, b *sir.Region) bool {
	return a.Code.Column > 0 && a.File == b.File && a.Line == b.Line && a.Code.Column == b.Code.Column
}

// call returns the region of a call.
func (t *tree) call(b, number int) sir.Region {
	inst := &t.insts[number]
	p := t.at(inst.addr)
	r := sir.Region{
		Name: "call." + printable(inst.callee), Kind: sir.Call, File: p.file, Line: p.line, Entry: inst.addr, Size: uint64(inst.Len),
		Code: &sir.Code{
			Column: p.column, EndLine: p.line, Ranges: []sir.Range{{Low: inst.addr, High: inst.end()}}, Entries: []uint64{inst.addr},
			Leave: []sir.Edge{{From: inst.addr, To: inst.end()}},
		},
	}
	if inst.callee != "*" {
		r.Code.Callee = t.im.sourceName(inst.callee)
	}
	before := inst.addr
	if number > t.pieces[b].from {
		before = t.insts[number-1].addr
	}
	r.Code.Enter = []sir.Edge{{From: before, To: inst.addr}}
	next := t.blockAt(inst.end())
	switch {
	case !inst.falls && !slices.Contains(inst.to, inst.end()):
		r.Code.Leave, r.Code.Untimed = nil, "the call does not return"
	case next >= 0 && len(t.Blocks[next].Pred) > 1:
		r.Code.Untimed = fmt.Sprintf("other code leads to the instruction behind the call, at %#x", inst.end())
	default:
		r.Code.Exits = []uint64{inst.end()}
	}
	return r
}

// edges returns edges of the graph by the addresses of their instructions.
func (t *tree) edges(edges []flow.Edge) (list []sir.Edge) {
	for _, e := range edges {
		from := uint64(0)
		if e.From != flow.Outside {
			from = t.Blocks[e.From].Last
		}
		list = append(list, sir.Edge{From: from, To: t.Blocks[e.To].Start})
	}
	return list
}

// measure finds the addresses that count and time a region. holds reports whether a block belongs to it.
//
// ends are the instructions of the region that leave the function.
//
// An exit must be passed at each end of an execution, and at no other time while control is in the
// region. It may also be passed while control is outside, because stopping a timer that does not run has
// no effect. So where only the outcome of a branch ends an execution, the exit is the instruction behind
// the branch, outside of the region.
func (t *tree) measure(c *sir.Code, enter, leave []flow.Edge, ends []uint64, holds func(block int) bool) {
	var err error
	if err = t.count(c, enter); err != nil {
		c.Entries, c.When, c.Uncounted, c.Untimed = nil, nil, err.Error(), err.Error()
		return
	}
	if c.Exits, err = t.Places(leave); err != nil && !slices.ContainsFunc(leave, func(e flow.Edge) bool { return holds(e.To) }) {
		c.SharedExits, err = true, nil
		for _, e := range leave {
			c.Exits = append(c.Exits, t.Blocks[e.To].Start)
		}
		slices.Sort(c.Exits)
		c.Exits = slices.Compact(c.Exits)
	}
	c.Exits = append(c.Exits, ends...)
	switch {
	case err != nil:
	case len(c.Exits) == 0:
		err = errNeverLeft
	case slices.ContainsFunc(c.Exits, func(a uint64) bool { return slices.Contains(c.Entries, a) }):
		err = errSamePlace
	default:
		err = t.balanced(append(slices.Clone(c.Entries), c.Exits...))
	}
	if err != nil {
		c.Exits, c.Untimed, c.SharedExits = nil, err.Error(), false
	}
}

// count finds the addresses that count edges. At some of them only one outcome of a branch counts.
func (t *tree) count(c *sir.Code, enter []flow.Edge) error {
	places, err := t.PlacesIf(enter)
	for _, p := range places {
		c.Entries = append(c.Entries, p.Addr)
		if !p.If {
			continue
		}
		when := t.outcome(p)
		if when == 0 {
			return &flow.CriticalError{Branch: p.Addr, Target: p.To}
		}
		if c.When == nil {
			c.When = map[uint64]sir.Condition{}
		}
		c.When[p.Addr] = when
	}
	return err
}

// outcome returns the condition under which control goes on to an address behind a branch, 0 if the flags do not tell.
func (t *tree) outcome(p flow.Place) sir.Condition {
	i, ok := slices.BinarySearchFunc(t.insts, p.Addr, func(i instruction, a uint64) int { return cmp.Compare(i.addr, a) })
	if !ok {
		return 0
	}
	number := slices.Index(conditions[:], t.insts[i].Op)
	switch {
	case number < 0:
		return 0
	case p.To == t.insts[i].end():
		number ^= 1
	}
	return sir.Condition(number + 1)
}

var (
	errNeverLeft = errors.New("it is never left")
	errSamePlace = errors.New("an execution begins at the address at which another one ends")
)

// balanced checks that the stack pointer has the same value at all addresses: timers identify an
// execution by this value.
func (t *tree) balanced(at []uint64) error {
	for _, a := range at {
		d := t.depthAt(a)
		if !d.known {
			return fmt.Errorf("the stack pointer at %#x is not known", a)
		}
		if d != t.depthAt(at[0]) {
			return fmt.Errorf("the stack pointer is not the same at %#x and %#x", at[0], a)
		}
	}
	return nil
}

func (t *tree) depthAt(addr uint64) stackAt {
	if i := numberAt(t.parts, addr); i >= 0 {
		return t.depth[i]
	}
	return stackAt{}
}

// ranges returns the code of blocks, in the order of the addresses.
func (t *tree) ranges(blocks []int) (list []sir.Range) {
	for _, b := range blocks {
		list = append(list, sir.Range{Low: t.Blocks[b].Start, High: t.Blocks[b].End})
	}
	slices.SortFunc(list, func(a, b sir.Range) int { return cmp.Compare(a.Low, b.Low) })
	joined := list[:0]
	for _, r := range list {
		if n := len(joined); n > 0 && joined[n-1].High == r.Low {
			joined[n-1].High = r.High
		} else {
			joined = append(joined, r)
		}
	}
	return joined
}

// WithInside returns a program of this image with the regions inside its functions, on as many
// processors as Go uses. If the regions of a function are not known, its field Unknown has the reason.
// The error is that of ctx.
func (im *Image) WithInside(ctx context.Context, p sir.Program) (sir.Program, error) {
	p.Regions = slices.Clone(p.Regions)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(p.Regions) {
					return
				}
				fill(ctx, im, &p.Regions[i])
			}
		})
	}
	workers.Wait()
	return p, ctx.Err()
}

// WithLater is WithInside with at most depth levels of regions, which are made while the document is written: that takes a
// third of the memory, and half of the time. The places of woven regions are known only from all regions.
func (im *Image) WithLater(ctx context.Context, p sir.Program, depth int) (sir.Program, error) {
	if p.Weaving != "" {
		p, err := im.WithInside(ctx, p)
		return (&sir.Structure{Programs: []sir.Program{p}}).Cut(depth).Programs[0], err
	}
	p.Inside = func(unit *sir.Region) error {
		fill(ctx, im, unit)
		unit.Cut(depth)
		return ctx.Err()
	}
	return p, nil
}

// fill sets the regions inside a function.
func fill(ctx context.Context, im *Image, r *sir.Region) {
	err := guard(im.path, func() (err error) {
		f, ok := im.find(r.Entry)
		if !ok || f.addr != r.Entry {
			return &CodeError{r.Name, r.Entry, "no function of " + im.name + " begins"}
		}
		r.Regions, err = im.inside(ctx, f, r)
		return err
	})
	if err != nil {
		r.Regions, r.Unknown = nil, err.Error()
	}
}
