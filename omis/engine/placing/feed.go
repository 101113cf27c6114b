package placing

import (
	"slices"
	"sync"
	"sync/atomic"

	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// feed is what the programs of one placement in one process have measured for a cell: the rows of a store,
// with the tokens of their threads. It exists as long as a program uses it, or as the cell if that is kept.
type feed struct {
	feedKey
	x     *Placing
	Proc  *Process
	store program.Store
	users int // number of programs; the lock guards it

	mu      sync.Mutex
	tallies [program.Operations]tally
	edges   map[edge]bool   // kinds of places where intervals begin and end
	closers map[int32]*feed // by mark of a record: the intervals that it has a value of
	// recalled reports that the store may have values of a former monitor.
	recalled bool

	// broken reports that programs are removed before the intervals end that they have opened.
	broken atomic.Bool
}

// feedKey identifies a feed within a process.
type feedKey struct {
	placer program.Placer
	cell   service.Cell
}

var _ service.Store = (*feed)(nil)

// feed returns the feed of a cell in a process, and makes it if necessary. It counts a user. The caller
// holds the lock.
func (x *Placing) feed(placer program.Placer, p *Process, cell service.Cell) (*feed, error) {
	f := p.feeds[feedKey{placer, cell}]
	// A broken feed still exists while its removed programs linger.
	if f == nil || f.broken.Load() && cell.Kind().HasIntervals() {
		store, err := x.newStore(placer, p, cell)
		if err != nil {
			return nil, err
		}
		f = x.newFeed(placer, p, cell, store)
		_, f.recalled = cell.(*hitCount) // its store may be of a former monitor, because no request has recalled it
	}
	f.users++
	return f, nil
}

// newFeed joins a store to a cell.
func (x *Placing) newFeed(placer program.Placer, p *Process, cell service.Cell, store program.Store) *feed {
	f := &feed{feedKey: feedKey{placer, cell}, x: x, Proc: p, store: store, edges: make(map[edge]bool)}
	if p.feeds == nil {
		p.feeds = make(map[feedKey]*feed)
	}
	p.feeds[f.feedKey] = f
	if k := x.kept[cell]; k != nil && canKeep(placer) {
		k.feeds = append(k.feeds, f)
	}
	p.Host.RememberThreads()
	cell.Join(f)
	return f
}

// release removes a user. The feed of a kept cell stays after its last user, unless the monitor now measures
// in place of the programs.
func (f *feed) release() {
	if f.users--; f.users > 0 {
		return
	}
	if k := f.x.kept[f.cell]; k != nil && slices.Contains(k.feeds, f) {
		if !f.broken.Load() {
			return
		}
		f.x.inMemory(f.cell)
		k.drop(f)
	}
	f.end()
}

// end moves the rows to the cell, and closes the store.
func (f *feed) end() {
	if f.Proc.feeds[f.feedKey] == f {
		delete(f.Proc.feeds, f.feedKey)
	}
	if err := f.cell.Leave(f); err != nil {
		f.x.log.Warn("what was measured in a process is lost", "process", f.Proc.Token, "error", err)
	}
	if err := f.store.Close(); err != nil {
		f.x.log.Warn("cannot free what measured a process", "process", f.Proc.Token, "error", err)
	}
}

// Reset: see service.Store. The number of executions is not reset.
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

// Rows: see service.Store.
func (f *feed) Rows() ([]service.Row, error) {
	room := f.x.room.Get().(*[]program.Row)
	defer f.x.room.Put(room)
	rows, err := readRows(f.store, (*room)[:0])
	*room = rows
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return f.appendNamed(make([]service.Row, 0, len(rows)), rows, &named{}), nil
}

// named caches the token of a row's thread: consecutive rows are often of the same thread.
type named struct {
	proc    *Process
	tid     int
	started uint64
	token   omis.Token
}

func (n *named) threadOf(p *Process, row *program.Row) omis.Token {
	if n.proc != p || n.tid != row.TID || n.started != row.Started {
		n.proc, n.tid, n.started, n.token = p, row.TID, row.Started, p.Host.ThreadOf(row.TID, row.Started, row.Alive)
	}
	return n.token
}

// appendNamed adds rows of the store to a list, with the tokens of their threads.
func (f *feed) appendNamed(list []service.Row, rows []program.Row, last *named) []service.Row {
	first := len(list)
	for i := range rows {
		list = append(list, service.Row{Proc: f.Proc.Token, Thread: last.threadOf(f.Proc, &rows[i]), Row: rows[i]})
	}
	if len(rows) > 0 && f.cell.Kind().HasIntervals() {
		f.correct(list[first:])
	}
	return list
}

// correct subtracts from intervals what probes cost.
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

// readRows reads a store, into the given list if the store can do that.
func readRows(s program.Store, room []program.Row) ([]program.Row, error) {
	if a, ok := s.(program.RowAppender); ok {
		return a.AppendRows(room)
	}
	return s.Rows()
}
