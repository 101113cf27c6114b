package engine

import (
	"math/bits"

	"mirador/omis"
)

// The services for threads (OMIS 8.1.3). Those that stop threads get all of them
// at once: one stop of a process for all its threads costs a fraction of one stop
// for each.

// crew is threads of one process.
type crew struct {
	proc    *process
	threads []*thread
}

func (c *crew) tids() []int {
	ids := make([]int, len(c.threads))
	for i, t := range c.threads {
		ids[i] = t.tid
	}
	return ids
}

// crews sorts threads by processes.
func crews(objs []object) []*crew {
	var list []*crew
	index := make(map[*process]*crew)
	for _, o := range objs {
		t := o.(*thread)
		g := index[t.proc]
		if g == nil {
			g = &crew{proc: t.proc}
			index[t.proc] = g
			list = append(list, g)
		}
		g.threads = append(g.threads, t)
	}
	return list
}

func threadStop(x *execution, _ *call, objs []object) omis.ServiceResult {
	return x.eachCrew(objs, x.e.node.Stop)
}

func threadContinue(x *execution, _ *call, objs []object) omis.ServiceResult {
	return x.eachCrew(objs, x.e.node.Continue)
}

// eachCrew stops or continues threads. Where all threads of a process are meant,
// the node is told so: no thread that is just being created may get away.
func (x *execution) eachCrew(objs []object, do func(omis.ProcID, []int) error) omis.ServiceResult {
	var failed omis.ServiceResult
	for _, g := range crews(objs) {
		tids := g.tids()
		if all, ok := x.conv.threads[g.proc]; ok && len(all) == len(tids) {
			tids = nil
		}
		if err := do(g.proc.id, tids); err != nil {
			for _, t := range g.threads {
				failed = append(failed, failure(err, t.token))
			}
		}
	}
	return failed
}

func threadGetBacktrace(x *execution, c *call, objs []object) omis.ServiceResult {
	depth, err := c.int(1)
	if err == nil && (depth < 0 || depth > 1<<20) {
		err = omis.Errorf(omis.ParameterError, "%d is no depth of a backtrace", depth)
	}
	if err != nil {
		return omis.ServiceResult{failure(err, tokens(objs)...)}
	}
	var results omis.ServiceResult
	for _, g := range crews(objs) {
		traces, err := x.e.node.Backtraces(g.proc.id, g.tids(), int(depth))
		for i, t := range g.threads {
			switch {
			case err != nil:
				results = append(results, failure(err, t.token))
			case traces[i].Err != nil:
				results = append(results, failure(traces[i].Err, t.token))
			default:
				results = append(results, omis.ObjectResult{
					Objects: []omis.Token{t.token}, Status: omis.OK, Values: frameValues(traces[i].Frames),
				})
			}
		}
	}
	return results
}

func frameValues(frames []omis.Frame) []omis.Value {
	list := make([]omis.Value, 0, 2*len(frames))
	for _, f := range frames {
		list = append(list, omis.Uint(f.PC), omis.Uint(f.FP))
	}
	return []omis.Value{omis.Int(int64(len(frames))), omis.List(list...)}
}

// knownThreadFields are the components thread_get_info has.
const knownThreadFields = omis.ThreadSystemTime<<1 - 1 | omis.ThreadName

func threadGetInfo(x *execution, c *call) ([]omis.Value, error) {
	t := c.object.(*thread)
	flags, err := c.int(1)
	if err != nil {
		return nil, err
	}
	if flags&^int64(knownThreadFields) != 0 {
		return nil, omis.Errorf(omis.ParameterError, "thread_get_info has no components for flags %#x", uint64(flags&^int64(knownThreadFields)))
	}
	fields := omis.ThreadFields(flags)
	if fields == 0 {
		return nil, nil
	}
	info, err := x.e.node.ThreadInfo(t.proc.id, t.tid, fields)
	if err != nil {
		return nil, err
	}
	values := make([]omis.Value, 0, bits.OnesCount32(uint32(fields)))
	for bit := omis.ThreadProcess; bit <= omis.ThreadName; bit <<= 1 {
		if fields&bit != 0 {
			values = append(values, x.threadValue(t, bit, &info))
		}
	}
	return values, nil
}

// threadValue is one component of the result.
func (x *execution) threadValue(t *thread, bit omis.ThreadFields, info *omis.ThreadInfo) omis.Value {
	switch bit {
	case omis.ThreadProcess:
		return omis.TokenValue(t.proc.token)
	case omis.ThreadGlobalID, omis.ThreadLocalID:
		return omis.Int(int64(t.tid))
	case omis.ThreadRootFunct:
		return omis.Uint(info.RootFunction)
	case omis.ThreadParent:
		if info.Parent == 0 {
			return omis.TokenValue(omis.Undefined)
		}
		return omis.TokenValue(x.e.reg.thread(t.proc, info.Parent).token)
	case omis.ThreadMessageQueue:
		return omis.TokenValue(omis.Undefined)
	case omis.ThreadStackSize:
		return omis.Int(info.StackSize)
	case omis.ThreadNode:
		return omis.TokenValue(x.e.self.token)
	case omis.ThreadSchedulingState:
		return omis.Int(int64(info.State))
	case omis.ThreadTotalTime:
		return omis.Float(info.TotalTime)
	case omis.ThreadPriority:
		return omis.Int(info.Priority)
	case omis.ThreadSystemTime:
		return omis.Float(info.SystemTime)
	}
	return omis.String(info.Name)
}
