package engine

import (
	"iter"

	"mirador/omis"
	"mirador/omis/engine/placing"
	"mirador/omis/program"
	"mirador/omis/service"
)

// Compile makes a program of the action list for a process. The error says which action only the monitor
// can execute, and why.
func (c *csr) Compile(in *placing.Process) ([]placing.Step, error) {
	p := processOf(in)
	t := c.tool
	var list []placing.Step
	for i := range c.steps {
		s := &c.steps[i]
		switch {
		case s.do.compile == nil:
			return nil, placing.Declined("%s cannot be done outside of the monitor", s.service.Name)
		case s.subject < 0 || len(tokensOf(s.args[s.subject])) == 0:
			return nil, placing.Declined("[] in %s stands for objects to come as well: name them", s.service.Name)
		case hasParams(s.args[s.subject : s.subject+1]):
			return nil, placing.Declined("%s takes its objects from the event", s.service.Name)
		}
		args, err := c.arguments(s, p)
		if err != nil {
			return nil, err
		}
		op, err := s.do.compile(args)
		if err != nil {
			return nil, err
		}
		for _, token := range tokensOf(s.args[s.subject]) {
			cell, _ := t.cell(token.Token())
			var source service.Cell
			if timed, ok := cell.(service.Clocked); ok {
				op.Clock, source = timed.Clock(), timed.Source()
			}
			if wide, ok := cell.(service.Wide); ok && wide.IsWide() {
				return nil, placing.Declined("it measures other threads than the one that executes it")
			}
			if sampled, ok := cell.(service.Sampled); ok {
				op.OneIn = sampled.OneIn()
			}
			if op.Times() && op.Clock == program.ClockMeter {
				return nil, placing.Declined("only the monitor reads what the kernel's performance counters count")
			}
			op.Histogram = cell != nil && op.Times() && cell.Kind() == program.StoreHistograms
			if traced, ok := cell.(service.Traced); ok {
				op.Room = traced.Room()
			}
			list = append(list, placing.Step{Op: op, Cell: cell, Source: source})
		}
	}
	return list, nil
}

// arguments returns the arguments of an action for a program in a process.
func (c *csr) arguments(s *step, p *process) ([]service.Argument, error) {
	args := service.Arguments(s.args)
	for i := range args {
		if v := &args[i]; v.Kind == omis.KindParam {
			var err error
			if v.Load, err = c.load(v.Str, p); err != nil {
				return nil, err
			}
		}
	}
	return args, nil
}

// load says how a program in a process loads an event context parameter.
func (c *csr) load(name string, p *process) (program.Load, error) {
	loader, able := declared(p.node().Can.Loader)
	i := c.paramIndex(name)
	if !able || i < 0 {
		return program.Load{}, placing.Declined("$%s is known to the monitor alone", name)
	}
	l, err := loader.Load(c.event.watch, i)
	if err != nil {
		return l, placing.Declined("$%s: %s", name, placing.Reason(err))
	}
	return l, nil
}

func tokensOf(v omis.Value) []omis.Value {
	if v.Kind == omis.KindList {
		return v.List
	}
	return []omis.Value{v}
}

// cell returns an object that programs can change.
func (t *Tool) cell(token omis.Token) (service.Cell, bool) {
	o, err := t.find(token)
	if err != nil {
		return nil, false
	}
	it, ok := o.(*item)
	if !ok {
		return nil, false
	}
	cell, ok := it.value.(service.Cell)
	return cell, ok
}

// Intervals returns the cells in which the action list opens and closes intervals, and the traces in which it
// records where on the stack executions begin and end. The caller holds Engine.admin.
func (c *csr) Intervals() []service.Cell {
	if g := c.tool.e.reg.generation.Load() + 1; c.cellsAt != g {
		c.cells, c.cellsAt = c.findIntervals(), g
	}
	return c.cells
}

func (c *csr) findIntervals() []service.Cell {
	var cells []service.Cell
	for i := range c.steps {
		for cell := range c.changedBy(&c.steps[i]) {
			if cell.Kind().HasIntervals() || cell.Kind() == program.StoreTraces && c.steps[i].op().Load.From == program.FromStack {
				cells = append(cells, cell)
			}
		}
	}
	return cells
}

// Changes yields the cells that the action list changes.
func (c *csr) Changes() iter.Seq[service.Cell] {
	return func(yield func(service.Cell) bool) {
		for i := range c.steps {
			for cell := range c.changedBy(&c.steps[i]) {
				if !yield(cell) {
					return
				}
			}
		}
	}
}

// changedBy yields the cells that an action changes.
func (c *csr) changedBy(s *step) iter.Seq[service.Cell] {
	return func(yield func(service.Cell) bool) {
		if s.do.compile == nil || s.subject < 0 {
			return
		}
		conv := conversions{tool: c.tool}
		objs, _ := conv.objects(s.args[s.subject], s.service.Params[s.subject])
		for _, o := range objs {
			if cell, ok := o.(*item).value.(service.Cell); ok && !yield(cell) {
				return
			}
		}
	}
}

// op returns the operation of an action, without what it loads from events; no operation if only the monitor can
// execute the action.
func (s step) op() program.Op {
	if s.do.compile == nil {
		return program.Op{}
	}
	op, err := s.do.compile(service.Arguments(s.args))
	if err != nil {
		return program.Op{}
	}
	return op
}

// times reports whether an action opens or closes intervals.
func (s step) times() bool { return s.op().Times() }
