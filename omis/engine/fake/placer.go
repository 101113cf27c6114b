package fake

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
)

// Placing is a node with placements.
type Placing struct {
	*Node
	Places []*Placer // cheapest first
}

// NewPlacing adds placements with the given names to a node.
func NewPlacing(n *Node, names ...string) *Placing {
	p := &Placing{Node: n}
	for _, name := range names {
		p.Places = append(p.Places, &Placer{Node: n, name: name})
	}
	return p
}

// Capabilities adds the placements to those of the node.
func (p *Placing) Capabilities() program.Capabilities {
	c := p.Node.Capabilities()
	for _, place := range p.Places {
		c.Placers = append(c.Placers, place)
	}
	return c
}

// Alone returns a node whose only placement is p.
func (p *Placer) Alone() *Placing { return &Placing{Node: p.Node, Places: []*Placer{p}} }

// Placer is a placement that executes programs in the handlers of the node's events.
type Placer struct {
	*Node
	name string
	// Refuse and RefuseProgram return an error for programs that cannot be placed.
	Refuse        func(node.Watch) error
	RefuseProgram func(program.Placing) error
	// Blind reports that programs cannot read sources: the result of ReadsSources is false.
	Blind bool
	// Costly reports that inactive programs cost time: the result of RestsFree is false.
	Costly bool
	// Unreadable returns an error for stores that cannot be read.
	Unreadable func(omis.ProcID, program.StoreKind) error
	// Started returns the start time of a thread. If it is nil, all threads have different
	// numbers, and none ends.
	Started func(tid int) uint64

	mu      sync.Mutex
	lingers bool      // the result of placed.Lingers
	placed  []*placed // including removed programs
	stores  []*store
	calls   []string             // see Calls
	asked   map[omis.ProcID]bool // the processes for which Recall was called
}

var (
	_ program.Keeper       = (*Placer)(nil)
	_ program.SourceReader = (*Placer)(nil)
)

// ReadsSources implements program.SourceReader.
func (p *Placer) ReadsSources() bool { return !p.Blind }

// Standing returns the number of programs that were placed and not removed, Placed the number
// of all programs that were ever placed.
func (p *Placer) Standing() (n int) { return p.count(func(pl *placed) bool { return !pl.removed }) }
func (p *Placer) Placed() (n int)   { return p.count(func(*placed) bool { return true }) }

// Linger sets whether threads may still run removed programs.
func (p *Placer) Linger(may bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lingers = may
}

// RunLate makes a thread run all removed programs.
func (p *Placer) RunLate(tid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pl := range p.placed {
		if pl.removed {
			pl.run(&node.Hit{TID: tid})
		}
	}
}

// Stores returns the number of open stores.
func (p *Placer) Stores() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stores)
}

// Programs returns all programs that were ever placed, in that order.
func (p *Placer) Programs() (list []program.Program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pl := range p.placed {
		list = append(list, pl.steps)
	}
	return list
}

func (p *Placer) count(which func(*placed) bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pl := range p.placed {
		if which(pl) {
			n++
		}
	}
	return n
}

// Exec makes a process execute another file, so that the programs in it vanish.
func (p *Placer) Exec(id omis.ProcID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pl := range p.placed {
		if pl.watch.Proc == id {
			pl.gone, pl.active = true, false
		}
	}
}

// Name implements program.Placer.
func (p *Placer) Name() string { return p.name }

// Calls returns the calls of methods with lists, each with the length of its list: "place 3".
func (p *Placer) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

func (p *Placer) note(what string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, fmt.Sprint(what, " ", n))
}

// Judge implements program.Placer.
func (p *Placer) Judge(list []program.Placing) ([]program.Verdict, []error) {
	p.note("judge", len(list))
	verdicts, errs := make([]program.Verdict, len(list)), make([]error, len(list))
	for i := range list {
		if errs[i] = p.refusal(&list[i]); errs[i] == nil {
			verdicts[i] = p.verdict()
		}
	}
	return verdicts, errs
}

func (p *Placer) refusal(l *program.Placing) error {
	if p.RefuseProgram != nil {
		if err := p.RefuseProgram(*l); err != nil {
			return err
		}
	}
	if p.Refuse == nil {
		return nil
	}
	return p.Refuse(l.Watch)
}

// RestsFree implements program.Rester.
func (p *Placer) RestsFree() bool { return !p.Costly }

// StandsAt reports whether a program is placed at an address.
func (p *Placer) StandsAt(addr uint64) bool {
	return p.count(func(pl *placed) bool { return !pl.removed && pl.watch.Addr == addr }) > 0
}

func (p *Placer) verdict() program.Verdict {
	return program.Verdict{Name: p.name, Where: "in the fake", Why: "it may", Cost: 1, Kind: "kind"}
}

func (p *Placer) NewStore(id omis.ProcID, kind program.StoreKind) (program.Store, error) {
	if _, err := p.called("NewStore", id); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &store{placer: p, proc: id, kind: kind}
	p.stores = append(p.stores, s)
	return s, nil
}

// Place implements program.Placer.
func (p *Placer) Place(list []program.Placing) ([]program.Placed, []error) {
	p.note("place", len(list))
	all, errs := make([]program.Placed, len(list)), make([]error, len(list))
	for i := range list {
		pl, err := p.place(&list[i])
		if err != nil {
			errs[i] = err
			continue
		}
		all[i] = pl
	}
	return all, errs
}

func (p *Placer) place(l *program.Placing) (*placed, error) {
	w, steps := l.Watch, l.Program
	if err := p.refusal(l); err != nil {
		return nil, err
	}
	if pl := p.adopt(w, steps); pl != nil {
		return pl, nil
	}
	pl := &placed{placer: p, watch: w, steps: steps}
	var err error
	if pl.cancel, err = p.Watch(w, pl.hit); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.placed = append(p.placed, pl)
	return pl, nil
}

// placed is a placed program; Placer.mu guards it.
type placed struct {
	placer                *Placer
	watch                 node.Watch
	steps                 program.Program
	cancel                func() error
	active, gone, removed bool
	orphan                bool // its monitor was killed, and the next has not adopted it
}

func (pl *placed) hit(h *node.Hit) {
	pl.placer.mu.Lock()
	defer pl.placer.mu.Unlock()
	if !pl.active || pl.watch.Threads != nil && !slices.Contains(pl.watch.Threads, h.TID) {
		return
	}
	pl.run(h)
}

func (pl *placed) run(h *node.Hit) {
	told, tells := int64(0), false
	for _, op := range pl.steps {
		s := op.Store.(*store)
		switch {
		case op.Load.From == program.FromStep:
			op.Value = told
		case op.Load.From == program.FromStack:
			op.Value = int64(h.SP)
		}
		if op.Load.From == program.FromStep && !tells {
			continue
		}
		if v, fits := value(op, pl.watch.Event, h); fits {
			op.Value = v
			told, tells = s.do(op, h)
		} else {
			s.overflows++
		}
	}
}

func (pl *placed) Verdict() program.Verdict { return pl.placer.verdict() }

func (pl *placed) SetActive(active bool) {
	pl.placer.mu.Lock()
	defer pl.placer.mu.Unlock()
	pl.active = active && !pl.gone
}

func (pl *placed) Stands() bool {
	pl.placer.mu.Lock()
	defer pl.placer.mu.Unlock()
	return !pl.gone
}

func (pl *placed) Lingers() bool {
	pl.placer.mu.Lock()
	defer pl.placer.mu.Unlock()
	return pl.placer.lingers
}

func (pl *placed) Covers(addr uint64) bool { return addr == pl.watch.Addr }

// Remove implements program.Placer.
func (p *Placer) Remove(list []program.Placed) error {
	p.note("remove", len(list))
	var errs []error
	for _, pl := range list {
		errs = append(errs, pl.(*placed).remove())
	}
	return errors.Join(errs...)
}

func (pl *placed) remove() error {
	pl.SetActive(false)
	err := pl.cancel()
	pl.placer.mu.Lock()
	defer pl.placer.mu.Unlock()
	pl.removed = true
	return err
}

var _ program.HistogramStore = (*store)(nil)

// store is a store of the fake; Placer.mu guards it.
type store struct {
	placer *Placer
	proc   omis.ProcID
	kind   program.StoreKind
	key    string // "": the store ends with the monitor
	orphan bool
	rows   []*storeRow
	lost   uint64 // records overwritten since the last Take
	// overflows is the number of values that were too large.
	overflows uint64
}

type storeRow struct {
	program.Row
	open    []openInterval
	passed  int64            // number of starts
	records []program.Record // the newest records that were not taken yet
	counts  []uint64
}

type openInterval struct {
	sp   uint64
	from int64
}

// do executes a step. It returns what the step has measured, if that is anything.
func (s *store) do(op program.Op, h *node.Hit) (measured int64, ok bool) {
	r := s.row(h.TID)
	if op.Whole {
		whole := *h
		whole.SP = 1
		h = &whole
		if op.Do == program.OpStart && len(r.open) > 0 {
			r.Unfinished, r.open = r.Unfinished+1, nil
		}
	}
	switch op.Do {
	case program.OpAdd:
		r.Value += op.Value
		measured, ok = r.Value, true
	case program.OpTrace:
		s.append(r, op, h)
	case program.OpStart:
		r.passed++
		if op.OneIn > 1 && r.passed%op.OneIn != 1 {
			r.Skipped++
			break
		}
		r.open = append(r.open, openInterval{h.SP, shows(op, h)})
	case program.OpStop:
		i := slices.IndexFunc(r.open, func(o openInterval) bool { return o.sp == h.SP })
		if i < 0 {
			return 0, false
		}
		r.Unfinished += int64(len(r.open) - i - 1)
		length := shows(op, h) - r.open[i].from
		r.open = r.open[:i]
		if length < 0 {
			r.Unfinished++
			break
		}
		r.measured(uint64(length), s.kind)
		measured, ok = length, true
	case program.OpTake:
		measured, ok = shows(op, h), true
		r.measured(uint64(measured), s.kind)
	}
	r.Open = int64(len(r.open))
	return measured, ok
}

func (r *storeRow) measured(length uint64, kind program.StoreKind) {
	if r.Count == 0 || length < r.Min {
		r.Min = length
	}
	r.Count, r.Last, r.Max = r.Count+1, length, max(r.Max, length)
	r.Sum.Lo += length
	r.Squares.Lo += length * length
	if kind == program.StoreHistograms {
		r.counts[program.BucketOf(length)]++
	}
}

// shows returns what the clock of a step shows for the thread of a hit.
func shows(op program.Op, h *node.Hit) int64 {
	if op.Source == nil {
		return h.Time
	}
	r := op.Source.(*store).row(h.TID)
	return r.Value + int64(r.Sum.Lo)
}

func (s *store) row(tid int) *storeRow {
	var started uint64
	if s.placer.Started != nil {
		started = s.placer.Started(tid)
	}
	for _, r := range s.rows {
		if r.TID == tid && r.Row.Started == started {
			return r
		}
	}
	r := &storeRow{Row: program.Row{TID: tid, Started: started}, counts: make([]uint64, program.Buckets)}
	s.rows = append(s.rows, r)
	return r
}

func (s *store) Rows() ([]program.Row, error) {
	s.placer.mu.Lock()
	defer s.placer.mu.Unlock()
	return s.readable()
}

func (s *store) readable() ([]program.Row, error) {
	if s.placer.Unreadable != nil {
		if err := s.placer.Unreadable(s.proc, s.kind); err != nil {
			return nil, err
		}
	}
	return s.read(), nil
}

// AppendRows implements program.ManyReader.
func (p *Placer) AppendRows(stores []program.Store, rows []program.Row, ends []int) ([]program.Row, []int, error) {
	p.note("read", len(stores))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range stores {
		more, err := s.(*store).readable()
		if err != nil {
			return rows, ends, err
		}
		rows = append(rows, more...)
		ends = append(ends, len(rows))
	}
	return rows, ends, nil
}

func (s *store) read() []program.Row {
	list := make([]program.Row, len(s.rows))
	for i, r := range s.rows {
		list[i] = r.Row
		list[i].Alive = s.placer.Started == nil || s.placer.Started(r.TID) == r.Row.Started
	}
	return list
}

// Histograms implements program.HistogramStore.
func (s *store) Histograms() ([]program.Histogram, error) {
	s.placer.mu.Lock()
	defer s.placer.mu.Unlock()
	rows, err := s.readable()
	list := make([]program.Histogram, len(rows))
	for i := range rows {
		list[i] = program.Histogram{Row: rows[i], Buckets: program.DistributionOf(s.rows[i].counts)}
	}
	return list, err
}

func (s *store) Reset() error {
	s.placer.mu.Lock()
	defer s.placer.mu.Unlock()
	s.rows, s.lost, s.overflows = nil, 0, 0
	return nil
}

func (s *store) Lost() uint64 {
	s.placer.mu.Lock()
	defer s.placer.mu.Unlock()
	return s.overflows
}

func (s *store) Close() error {
	s.placer.mu.Lock()
	defer s.placer.mu.Unlock()
	s.placer.stores = slices.DeleteFunc(s.placer.stores, func(other *store) bool { return other == s })
	return nil
}
