package engine

import (
	"math/bits"

	"mirador/omis"
	"mirador/omis/node"
)

// The services for threads (OMIS 8.1.3). Services that stop threads get all threads of a process together:
// one stop of a process costs a fraction of a stop for each thread.

// crew is a set of threads of one process.
type crew struct {
	proc    *process
	threads []*thread
}

func (c *crew) tids() []int {
	return mapped(c.threads, func(t *thread) int { return t.tid })
}

// crews divides threads by processes.
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
	return x.eachCrew(objs, x.stopCrew)
}

func threadContinue(x *execution, _ *call, objs []object) omis.ServiceResult {
	return x.eachCrew(objs, x.continueCrew)
}

// eachCrew calls do for the threads of each process together.
func (x *execution) eachCrew(objs []object, do func(*crew, []int) error) omis.ServiceResult {
	var failed omis.ServiceResult
	for _, g := range crews(objs) {
		failed = append(failed, x.onCrew(g, do)...)
	}
	return failed
}

// onCrew calls do for threads of a process together. If that fails, it calls do for each thread, so that
// only those fail that must.
func (x *execution) onCrew(g *crew, do func(*crew, []int) error) omis.ServiceResult {
	tids := g.tids()
	if x.conv.whole(g) {
		tids = nil
	}
	err := do(g, tids)
	switch {
	case err == nil:
		return nil
	case len(g.threads) == 1 || isUnsupported(err):
		return omis.ServiceResult{failure(err, tokens(g.threads)...)}
	}
	return oneByOne(g, do)
}

func oneByOne(g *crew, do func(*crew, []int) error) omis.ServiceResult {
	var failed omis.ServiceResult
	for _, t := range g.threads {
		if err := do(&crew{proc: g.proc, threads: []*thread{t}}, []int{t.tid}); err != nil {
			failed = append(failed, failure(err, t.token))
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
		at := g.proc.at()
		traces, err := at.node.Backtraces(at.id, g.tids(), int(depth))
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

func frameValues(frames []node.Frame) []omis.Value {
	list := make([]omis.Value, 0, 2*len(frames))
	for _, f := range frames {
		list = append(list, omis.Uint(f.PC), omis.Uint(f.FP))
	}
	return []omis.Value{omis.Int(int64(len(frames))), omis.List(list...)}
}

// knownThreadFields are the components that thread_get_info has.
const knownThreadFields = node.ThreadSystemTime<<1 - 1 | (node.LastThreadField<<1 - node.ThreadName)

func threadFields(c *call) (node.ThreadFields, error) {
	flags, err := c.int(1)
	if err == nil && flags&^int64(knownThreadFields) != 0 {
		err = omis.Errorf(omis.ParameterError, "thread_get_info has no components for flags %#x", uint64(flags&^int64(knownThreadFields)))
	}
	return node.ThreadFields(flags), err
}

// threadsAhead reads the threads of each process together, if the node can do that.
func threadsAhead(c *call, objs []object) (read int) {
	fields, err := threadFields(c)
	if err != nil || fields == 0 || len(objs) == 1 {
		return 0
	}
	c.infos = make(map[*process]map[int]node.ThreadInfo)
	for _, g := range crews(objs) {
		at := g.proc.at()
		if node, ok := declared(at.node.Can.ThreadCrowd); ok {
			infos := node.ThreadInfos(at.id, g.tids(), fields)
			c.infos[g.proc] = infos
			read += min(len(infos), len(g.threads))
		}
	}
	return read
}

func threadGetInfo(x *execution, c *call) ([]omis.Value, error) {
	t := c.object.(*thread)
	fields, err := threadFields(c)
	if err != nil || fields == 0 {
		return nil, err
	}
	info, read := c.infos[t.proc][t.tid]
	if !read {
		at := t.proc.at()
		if info, err = at.node.ThreadInfo(at.id, t.tid, fields); err != nil {
			return nil, err
		}
	}
	values := make([]omis.Value, 0, bits.OnesCount32(uint32(fields)))
	for bit := node.ThreadProcess; bit <= node.LastThreadField; bit <<= 1 {
		if fields&bit != 0 {
			values = append(values, x.threadValue(t, bit, &info))
		}
	}
	return values, nil
}

// threadValue returns one component of the result.
func (x *execution) threadValue(t *thread, bit node.ThreadFields, info *node.ThreadInfo) omis.Value {
	switch bit {
	case node.ThreadProcess:
		return omis.TokenValue(t.proc.token)
	case node.ThreadGlobalID, node.ThreadLocalID:
		return omis.Int(int64(t.tid))
	case node.ThreadRootFunct:
		return omis.Uint(info.RootFunction)
	case node.ThreadParent:
		if info.Parent == 0 {
			return omis.TokenValue(omis.Undefined)
		}
		return omis.TokenValue(x.e.reg.thread(t.proc, info.Parent).token)
	case node.ThreadMessageQueue:
		return omis.TokenValue(x.e.queueOf(t.proc, t.tid))
	case node.ThreadStackSize:
		return omis.Int(info.StackSize)
	case node.ThreadNode:
		return omis.TokenValue(t.proc.node().token)
	case node.ThreadSchedulingState:
		return omis.Int(int64(info.State))
	case node.ThreadTotalTime:
		return omis.Seconds(uint64(info.TotalTime))
	case node.ThreadPriority:
		return omis.Int(info.Priority)
	case node.ThreadSystemTime:
		return omis.Seconds(uint64(info.SystemTime))
	case node.ThreadName:
		return omis.String(info.Name)
	}
	return usageValue(bit, &info.Usage)
}

// usageValue returns one of the components that threads have as processes do.
func usageValue(bit node.ThreadFields, u *node.Usage) omis.Value {
	switch bit {
	case node.ThreadUserTime:
		return omis.Seconds(uint64(u.UserTime))
	case node.ThreadQueuedTime:
		return omis.Seconds(uint64(u.QueuedTime))
	case node.ThreadMinorPageFaults:
		return omis.Int(u.MinorFaults)
	case node.ThreadMajorPageFaults:
		return omis.Int(u.MajorFaults)
	case node.ThreadVolContSwitch:
		return omis.Int(u.VoluntarySwitches)
	case node.ThreadInvolContSwitch:
		return omis.Int(u.InvoluntaryOnes)
	case node.ThreadReadBytes:
		return omis.Int(u.ReadBytes)
	case node.ThreadWrittenBytes:
		return omis.Int(u.WrittenBytes)
	case node.ThreadFileInput:
		return omis.Int(u.FileInput)
	}
	return omis.Int(u.FileOutput)
}

func threadSendSignal(_ *execution, c *call) ([]omis.Value, error) {
	return nil, controlThread(c, node.ThreadControl.SignalThread)
}

func threadSetPriority(_ *execution, c *call) ([]omis.Value, error) {
	return nil, controlThread(c, node.ThreadControl.SetThreadPriority)
}

// controlThread does what takes one number.
func controlThread(c *call, do func(_ node.ThreadControl, _ omis.ProcID, tid, number int) error) error {
	n, err := c.small(1)
	if err != nil {
		return err
	}
	t := c.object.(*thread)
	at := t.proc.at()
	control, err := capability(at.node, at.node.Can.ThreadControl, c.service)
	if err != nil {
		return err
	}
	return do(control, at.id, t.tid, n)
}
