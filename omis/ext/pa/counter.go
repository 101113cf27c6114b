package pa

import (
	"math"
	"sync"

	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

// counter has a count for each thread. Its methods may be called from any goroutine.
type counter struct {
	feeds    feeds // its lock is taken before mu
	mu       sync.Mutex
	rows     []*count // in the order of each thread's first count
	byThread map[owner]*count
}

// owner identifies the thread of a row. A thread's token is never reused, so a row never
// passes to another thread; the process distinguishes rows without a thread.
type owner struct{ proc, thread omis.Token }

type count struct {
	owner
	value int64
}

func (r *count) append(list []omis.Value) []omis.Value {
	return append(list, omis.TokenValue(r.proc), omis.TokenValue(r.thread), omis.Int(r.value))
}

func newCounter() *counter { return &counter{byThread: make(map[owner]*count)} }

// add adds n in a thread's row, and returns the sum.
func (c *counter) add(o owner, n int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addLocked(o, n)
}

func (c *counter) addLocked(o owner, n int64) int64 {
	row := c.byThread[o]
	if row == nil {
		row = &count{owner: o}
		c.byThread[o] = row
		c.feeds.hide()
		c.rows = append(c.rows, row)
	}
	row.value += n
	return row.value
}

func (c *counter) reset() error {
	c.feeds.Lock()
	defer c.feeds.Unlock()
	err := c.feeds.reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.byThread)
	c.rows = nil
	c.feeds.show(0)
	return err
}

func (c *counter) values(level int64) ([]omis.Value, error) {
	c.feeds.Lock()
	defer c.feeds.Unlock()
	fed, err := c.feeds.rows()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	rows := c.with(fed).rows
	if level != byThreads {
		rows = gather(rows, level, func(r *count) owner { return r.owner },
			func(o owner) *count { return &count{owner: o} }, func(sum, r *count) { sum.value += r.value })
	}
	list := make([]omis.Value, 0, 3*len(rows))
	for _, r := range rows {
		list = r.append(list)
	}
	return []omis.Value{omis.Int(int64(len(rows))), omis.List(list...)}, nil
}

// with returns a counter with the rows of stores added to the rows of c, or c itself if
// there are no stores. The caller holds mu.
func (c *counter) with(fed []service.Row) *counter {
	if len(fed) == 0 {
		return c
	}
	all := newCounter()
	for _, r := range c.rows {
		all.addLocked(r.owner, r.value)
	}
	all.take(fed)
	return all
}

func (c *counter) take(fed []service.Row) {
	for _, r := range fed {
		c.addLocked(owner{r.Proc, r.Thread}, r.Value)
	}
}

// inStores implements measure.
func (c *counter) inStores() *shown { return c.feeds.shown.Load() }

func (*counter) appendFed(list []omis.Value, r *service.Row) []omis.Value {
	one := count{owner{r.Proc, r.Thread}, r.Value}
	return one.append(list)
}

func (*counter) Kind() program.StoreKind { return program.StoreSums }

func (c *counter) Join(s service.Store) {
	c.feeds.Lock()
	defer c.feeds.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.feeds.stores = append(c.feeds.stores, s)
	c.feeds.show(len(c.rows))
}

func (c *counter) Leave(s service.Store) error {
	c.feeds.Lock()
	defer c.feeds.Unlock()
	c.feeds.leave(s)
	fed, err := s.Rows()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(fed)
	c.feeds.show(len(c.rows))
	return err
}

// compileAmount compiles pa_counter_add_amount to a step of a program.
func compileAmount(args []service.Argument) (program.Op, error) {
	op, err := compileAdd(args)
	op.Value = max(op.Value, 0)
	op.Load.Amount = op.Load.IsLoaded()
	return op, err
}

// compileAdd compiles pa_counter_add to a step of a program.
func compileAdd(args []service.Argument) (program.Op, error) {
	if args[1].Load.IsLoaded() {
		return program.Op{Do: program.OpAdd, Load: args[1].Load}, nil
	}
	n, ok := args[1].Int64()
	if !ok {
		return program.Op{}, omis.Errorf(omis.ParameterError, "the value to add does not fit into a signed 64-bit integer")
	}
	return program.Op{Do: program.OpAdd, Value: n}, nil
}

// counterServices returns the table rows of counters.
func counterServices() []service.Service {
	return []service.Service{
		{
			Name: "pa_counter_create", Action: createCounter, Class: classCounter, Result: "token",
			Doc: "make a counter and return its token",
		},
		{
			Name: "pa_counter_delete", Action: remove, Class: classCounter, Object: classCounter, Params: []service.Param{counters()},
			Doc: "delete counters",
		},
		{
			Name: "pa_counter_reset", Action: resetCounter, Class: classCounter, Object: classCounter, Params: []service.Param{counters()},
			Doc: "delete all rows of counters",
		},
		{
			Name: "pa_counter_add", Action: addToCounter, Compile: compileAdd, Class: classCounter, Object: classCounter, Local: true,
			Params: []service.Param{counters(), service.IntegerParam("value")},
			Doc:    "add a value to counters, in the row of the thread that the event belongs to",
		},
		{
			Name: "pa_counter_add_amount", Action: addAmountToCounter, Compile: compileAmount, Class: classCounter, Object: classCounter, Local: true,
			Params: []service.Param{counters(), service.IntegerParam("value")},
			Doc:    "add a value to counters as pa_counter_add does, but 0 if the value is negative, such as the result of a call that failed",
		},
		{
			Name: "pa_counter_read", Action: readCounter, Collect: collect, Class: classCounter, Kind: service.Information, Object: classCounter,
			Params: []service.Param{counters()}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer value; }* threads; }",
			Doc:    "return the rows of counters. Threads that ended before a thousand others share one row, whose thread token names no thread",
		},
	}
}

func createCounter(c *service.Call) ([]omis.Value, error) {
	return []omis.Value{omis.TokenValue(c.Scope.Add(classCounter, newCounter()))}, nil
}

func resetCounter(c *service.Call) ([]omis.Value, error) {
	return nil, c.Object.(*counter).reset()
}

func addToCounter(c *service.Call) ([]omis.Value, error) {
	return addAtLeast(math.MinInt64, c)
}

func addAmountToCounter(c *service.Call) ([]omis.Value, error) {
	return addAtLeast(0, c)
}

// addAtLeast adds a value, or least if the value is smaller.
func addAtLeast(least int64, c *service.Call) ([]omis.Value, error) {
	n, ok := c.Args[1].Int64()
	if !ok {
		return nil, omis.Errorf(omis.ParameterError, "the value to add does not fit into a signed 64-bit integer")
	}
	proc, thread := origin(c.Event)
	sum := c.Object.(*counter).add(owner{proc, thread}, max(n, least))
	if c.Event != nil {
		c.Event.Measured, c.Event.Measures = sum, true
	}
	return nil, nil
}

func readCounter(c *service.Call) ([]omis.Value, error) {
	return c.Object.(*counter).values(byThreads)
}
