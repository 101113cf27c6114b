package pa

import (
	"sync"

	"mirador/omis"
	"mirador/omis/service"
)

// counter counts by threads. Its methods may be called from any goroutine.
type counter struct {
	mu       sync.Mutex
	rows     []*count // in the order in which the threads came
	byThread map[owner]*count
}

// owner is whom a row belongs to. A thread's token is never used again, so a row
// never becomes another thread's; the process tells apart what belongs to no
// thread.
type owner struct{ proc, thread omis.Token }

type count struct {
	owner
	value int64
}

func newCounter() *counter { return &counter{byThread: make(map[owner]*count)} }

func (c *counter) add(o owner, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	row := c.byThread[o]
	if row == nil {
		row = &count{owner: o}
		c.byThread[o] = row
		c.rows = append(c.rows, row)
	}
	row.value += n
}

func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.byThread)
	c.rows = nil
}

func (c *counter) values(level int64) []omis.Value {
	c.mu.Lock()
	defer c.mu.Unlock()
	rows := c.rows
	if level != byThreads {
		rows = gather(rows, level, func(r *count) owner { return r.owner },
			func(o owner) *count { return &count{owner: o} }, func(sum, r *count) { sum.value += r.value })
	}
	list := make([]omis.Value, 0, 3*len(rows))
	for _, r := range rows {
		list = append(list, omis.TokenValue(r.proc), omis.TokenValue(r.thread), omis.Int(r.value))
	}
	return []omis.Value{omis.Int(int64(len(rows))), omis.List(list...)}
}

func createCounter(c *service.Call) ([]omis.Value, error) {
	return []omis.Value{omis.TokenValue(c.Scope.Add(classCounter, newCounter()))}, nil
}

func resetCounter(c *service.Call) ([]omis.Value, error) {
	c.Object.(*counter).reset()
	return nil, nil
}

func addToCounter(c *service.Call) ([]omis.Value, error) {
	n, ok := c.Args[1].Int64()
	if !ok {
		return nil, omis.Errorf(omis.ParameterError, "the value to add does not fit into 64 bits with a sign")
	}
	proc, thread := origin(c.Event)
	c.Object.(*counter).add(owner{proc, thread}, n)
	return nil, nil
}

func readCounter(c *service.Call) ([]omis.Value, error) {
	return c.Object.(*counter).values(byThreads), nil
}
