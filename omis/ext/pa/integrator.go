package pa

import (
	"sync"

	"mirador/omis"
	"mirador/omis/service"
)

// integrator summarises values for each thread: their number, last, least and greatest
// value, sum and sum of squares. Its methods may be called from any goroutine.
type integrator struct {
	mu       sync.Mutex
	rows     []*values // in the order of each thread's first value
	byThread map[owner]*values
}

type values struct {
	owner
	count        int64
	last         float64
	min, max     float64
	sum, squares float64
}

func newIntegrator() *integrator { return &integrator{byThread: make(map[owner]*values)} }

func (g *integrator) add(o owner, v float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	row := g.byThread[o]
	if row == nil {
		row = &values{owner: o}
		g.byThread[o] = row
		g.rows = append(g.rows, row)
	}
	row.join(values{count: 1, last: v, min: v, max: v, sum: v, squares: v * v})
}

// join adds later values.
func (r *values) join(later values) {
	if r.count == 0 {
		r.min, r.max = later.min, later.max
	}
	r.min, r.max = min(r.min, later.min), max(r.max, later.max)
	r.count += later.count
	r.sum += later.sum
	r.squares += later.squares
	r.last = later.last
}

func (g *integrator) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.byThread)
	g.rows = nil
}

// read returns the rows, summed up to a level. The last value of a sum is the value of
// the thread whose row was made last.
func (g *integrator) read(level int64) []omis.Value {
	g.mu.Lock()
	defer g.mu.Unlock()
	rows := gather(g.rows, level, func(r *values) owner { return r.owner },
		func(o owner) *values { return &values{owner: o} }, func(sum, r *values) { sum.join(*r) })
	list := make([]omis.Value, 0, 8*len(rows))
	for _, r := range rows {
		list = append(list, omis.TokenValue(r.proc), omis.TokenValue(r.thread), omis.Int(r.count),
			omis.Float(r.last), omis.Float(r.sum), omis.Float(r.squares), omis.Float(r.min), omis.Float(r.max))
	}
	return []omis.Value{omis.Int(int64(len(rows))), omis.List(list...)}
}

// integratorServices returns the table rows of integrators.
func integratorServices() []service.Service {
	list := service.TokensParam("integrator_list", classIntegrator)
	return []service.Service{
		{
			Name: "pa_integrator_create", Action: createIntegrator, Class: classIntegrator, Result: "token",
			Doc: "make an integrator and return its token",
		},
		{
			Name: "pa_integrator_delete", Action: remove, Class: classIntegrator, Object: classIntegrator, Params: []service.Param{list},
			Doc: "delete integrators",
		},
		{
			Name: "pa_integrator_reset", Action: resetIntegrator, Class: classIntegrator, Object: classIntegrator, Params: []service.Param{list},
			Doc: "delete all rows of integrators",
		},
		{
			Name: "pa_integrator_add", Action: addToIntegrator, Class: classIntegrator, Object: classIntegrator, Local: true,
			Params: []service.Param{list, {Name: "value", Type: service.Floating}},
			Doc:    "add a value to integrators, in the row of the thread that the event belongs to",
		},
		{
			Name: "pa_integrator_read", Action: readIntegrator, Class: classIntegrator, Kind: service.Information, Object: classIntegrator,
			Params: []service.Param{list, service.IntegerParam("level")}, Role: service.Read,
			Result: "struct { integer num; struct { token process; token thread; integer count; floating last; floating sum; floating sumsq; floating min; floating max; }* rows; }",
			Doc:    "return the rows of integrators by threads (level 0), by processes (1) or in total (2)",
		},
	}
}

func createIntegrator(c *service.Call) ([]omis.Value, error) {
	return []omis.Value{omis.TokenValue(c.Scope.Add(classIntegrator, newIntegrator()))}, nil
}

func resetIntegrator(c *service.Call) ([]omis.Value, error) {
	c.Object.(*integrator).reset()
	return nil, nil
}

func addToIntegrator(c *service.Call) ([]omis.Value, error) {
	v, _ := c.Args[1].Number()
	proc, thread := origin(c.Event)
	c.Object.(*integrator).add(owner{proc, thread}, v)
	return nil, nil
}

func readIntegrator(c *service.Call) ([]omis.Value, error) {
	level, err := levelOf(c.Args[1])
	if err != nil {
		return nil, err
	}
	return c.Object.(*integrator).read(level), nil
}
