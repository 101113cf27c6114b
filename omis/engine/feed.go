package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// feed is what the programs of a placement in a process keep of a cell: the rows of a
// store, with the tokens of their threads. It lasts as long as there is such a program, or as the
// cell where that is kept.
type feed struct {
	feedKey
	e     *Engine
	proc  *process
	store program.Store
	users int // programs; guarded by Engine.admin

	mu      sync.Mutex
	tallies [program.Operations]tally
	edges   map[edge]bool // where intervals begin and end
	// recalled tells that what is in the store may be from before the monitor's time.
	recalled bool

	// broken tells that the programs end before what they measure did.
	broken atomic.Bool
}

// feedKey tells the feeds of a process apart.
type feedKey struct {
	placer program.Placer
	cell   service.Cell
}

var _ service.Store = (*feed)(nil)

// feed returns the feed of a cell in a process, made at the first time, and counts a
// user. The caller holds Engine.admin.
func (e *Engine) feed(placer program.Placer, p *process, cell service.Cell) (*feed, error) {
	f := p.feeds[feedKey{placer, cell}]
	// One whose intervals have moved away is there yet where its programs linger.
	if f == nil || f.broken.Load() && cell.Kind().HasIntervals() {
		store, err := e.newStore(placer, p, cell)
		if err != nil {
			return nil, err
		}
		f = e.newFeed(placer, p, cell, store)
		_, f.recalled = cell.(*hitCount) // whose store nobody has asked for before
	}
	f.users++
	return f, nil
}

// feedsAny tells whether programs in the process work on a cell.
func (p *process) feedsAny(cell service.Cell) bool {
	return slices.ContainsFunc(p.node().can.Placers, func(placer program.Placer) bool { return p.feeds[feedKey{placer, cell}] != nil })
}

// newFeed adds a store to a cell.
func (e *Engine) newFeed(placer program.Placer, p *process, cell service.Cell, store program.Store) *feed {
	f := &feed{feedKey: feedKey{placer, cell}, e: e, proc: p, store: store, edges: make(map[edge]bool)}
	if p.feeds == nil {
		p.feeds = make(map[feedKey]*feed)
	}
	p.feeds[f.feedKey] = f
	if k := e.kept[cell]; k != nil && canKeep(placer) {
		k.feeds = append(k.feeds, f)
	}
	e.reg.rememberThreads(p)
	cell.Join(f)
	return f
}

// release is the contrary of feed. One that is kept stays, unless the monitor measures
// on in place of its programs.
func (f *feed) release() {
	if f.users--; f.users > 0 {
		return
	}
	if k := f.e.kept[f.cell]; k != nil && slices.Contains(k.feeds, f) {
		if !f.broken.Load() {
			return
		}
		f.e.inMemory(f.cell)
		k.drop(f)
	}
	f.end()
}

// end has the cell take over the rows.
func (f *feed) end() {
	if f.proc.feeds[f.feedKey] == f {
		delete(f.proc.feeds, f.feedKey)
	}
	if err := f.cell.Leave(f); err != nil {
		f.e.log.Warn("what was measured in a process is lost", "process", f.proc.token, "error", err)
	}
	if err := f.store.Close(); err != nil {
		f.e.log.Warn("cannot free what measured a process", "process", f.proc.token, "error", err)
	}
}

// Reset keeps how often programs were executed.
func (f *feed) Reset() error {
	if n, err := f.executions(); err == nil {
		f.mu.Lock()
		for op := range f.tallies {
			f.tallies[op].past += n[op]
		}
		f.mu.Unlock()
	}
	return f.store.Reset()
}

func (f *feed) Rows() ([]service.Row, error) {
	room := f.e.room.Get().(*[]program.Row)
	defer f.e.room.Put(room)
	rows, err := readRows(f.store, (*room)[:0])
	*room = rows
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return f.appendNamed(make([]service.Row, 0, len(rows)), rows, &named{reg: f.e.reg}), nil
}

// named is the row whose thread's token was looked up last: the next one is often of
// the same thread.
type named struct {
	reg   *registry
	proc  *process
	key   rowKey
	token omis.Token
}

func (n *named) threadOf(p *process, row *program.Row) omis.Token {
	if key := (rowKey{row.TID, row.Started}); n.proc != p || n.key != key {
		n.proc, n.key, n.token = p, key, n.reg.threadOfRow(p, row)
	}
	return n.token
}

// appendNamed adds rows of the store to a list, with whose they are.
func (f *feed) appendNamed(list []service.Row, rows []program.Row, last *named) []service.Row {
	first := len(list)
	for i := range rows {
		list = append(list, service.Row{Proc: f.proc.token, Thread: last.threadOf(f.proc, &rows[i]), Row: rows[i]})
	}
	if len(rows) > 0 && f.cell.Kind().HasIntervals() {
		f.correct(list[first:])
	}
	return list
}

// correct takes what probes cost off intervals.
func (f *feed) correct(list []service.Row) {
	f.calibrate()
	bias := f.bias()
	for i := range list {
		r := &list[i]
		r.Intervals = r.Intervals.Without(bias)
		if f.broken.Load() {
			r.Unfinished, r.Open = r.Unfinished+r.Open, 0
		}
	}
}

// readRows reads a store into a list of rows that has room, if the store can do that.
func readRows(s program.Store, room []program.Row) ([]program.Row, error) {
	if a, ok := s.(program.RowAppender); ok {
		return a.AppendRows(room)
	}
	return s.Rows()
}

// rowKey names a thread of a process, also one that has ended.
type rowKey struct {
	tid     int
	started uint64
}

// threadOfRow is the token of the thread that a row of a store belongs to: once and
// for all the same.
func (r *registry) threadOfRow(p *process, row *program.Row) omis.Token {
	key := rowKey{row.TID, row.Started}
	r.mu.RLock()
	token, known := p.rowTokens[key]
	r.mu.RUnlock()
	if known {
		return token
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if token, known := p.rowTokens[key]; known {
		return token
	}
	return r.nameRowLocked(p, key, row)
}

func (r *registry) nameRowLocked(p *process, key rowKey, row *program.Row) omis.Token {
	token := r.newRowTokenLocked(p, row)
	if p.rowTokens == nil {
		p.rowTokens, p.hasRow = make(map[rowKey]omis.Token), make(map[omis.Token]bool)
	}
	p.rowTokens[key], p.hasRow[token] = token, true
	r.grownLocked(p)
	return token
}

// newRowTokenLocked finds the token for a row that is read first. What the tables say
// of its number may be about another thread that had it before, or has it by now.
func (r *registry) newRowTokenLocked(p *process, row *program.Row) omis.Token {
	t := p.threads[row.TID]
	if t != nil && p.hasRow[t.token] {
		if !row.Alive {
			return r.newIdent(omis.ClassThread).token
		}
		r.dropThreadLocked(t)
		t = nil
	}
	switch {
	case t != nil:
		return t.token
	case row.Alive:
		return r.threadLocked(p, row.TID).token
	}
	if former := p.former[row.TID]; former != "" && !p.hasRow[former] {
		return former
	}
	return r.newIdent(omis.ClassThread).token
}

// rememberThreads keeps the tokens of threads that end, for rows that are read later.
func (r *registry) rememberThreads(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.former == nil {
		p.former = make(map[int]omis.Token)
	}
}
