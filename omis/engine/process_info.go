package engine

import (
	"math/bits"

	"mirador/omis"
	"mirador/omis/node"
)

// The information services for processes (OMIS 8.1.2).

// knownProcFields are the components that proc_get_info has.
const knownProcFields = node.LastProcField<<1 - 1

func procFields(c *call) (node.ProcFields, error) {
	flags, err := c.int(1)
	if err == nil && flags&^int64(knownProcFields) != 0 {
		err = omis.Errorf(omis.ParameterError, "proc_get_info has no components for flags %#x", uint64(flags&^int64(knownProcFields)))
	}
	return node.ProcFields(flags), err
}

// procsAhead reads all processes of a node together, if the node can do that.
func procsAhead(c *call, objs []object) (read int) {
	fields, err := procFields(c)
	if err != nil || fields == 0 || len(objs) < 2 {
		return 0
	}
	home := nodeOf(objs[0]) // each call has processes of one node, but one may just have moved
	crowd, ok := declared(home.Can.ProcCrowd)
	if !ok {
		return 0
	}
	procs, list := make([]*process, 0, len(objs)), make([]omis.ProcID, 0, len(objs))
	for _, o := range objs {
		p := o.(*process)
		if at := p.at(); at.node == home {
			procs, list = append(procs, p), append(list, at.id)
		}
	}
	infos := crowd.ProcInfos(list, fields)
	c.procs = make(map[*process]*node.ProcInfo, len(infos))
	for i, info := range infos {
		if info != nil {
			c.procs[procs[i]] = info
			read++
		}
	}
	return read
}

func procGetInfo(x *execution, c *call) ([]omis.Value, error) {
	p := c.object.(*process)
	fields, err := procFields(c)
	if err != nil || fields == 0 {
		return nil, err
	}
	info := c.procs[p]
	if info == nil {
		at := p.at()
		one, err := at.node.ProcInfo(at.id, fields)
		if err != nil {
			return nil, err
		}
		info = &one
	}
	values := make([]omis.Value, 0, bits.OnesCount32(uint32(fields)))
	for bit := node.ProcGlobalID; bit <= node.LastProcField; bit <<= 1 {
		if fields&bit != 0 {
			values = append(values, x.procValue(p, bit, info))
		}
	}
	return values, nil
}

// procValue returns one component of the result.
func (x *execution) procValue(p *process, bit node.ProcFields, info *node.ProcInfo) omis.Value {
	switch bit {
	case node.ProcGlobalID, node.ProcLocalID:
		// No programming library gives processes other ids.
		return omis.Int(int64(p.at().id.PID))
	case node.ProcArgv, node.ProcUserArgv:
		return stringList(info.Argv)
	case node.ProcEnvp:
		return stringList(info.Envp)
	case node.ProcParent:
		return omis.TokenValue(x.parentToken(p.node(), info.Parent))
	case node.ProcMessageQueue:
		return omis.TokenValue(x.e.queueOf(p, 0))
	case node.ProcNode:
		return omis.TokenValue(p.node().token)
	case node.ProcTotalTime:
		return omis.Seconds(uint64(info.TotalTime))
	case node.ProcSystemTime:
		return omis.Seconds(uint64(info.SystemTime))
	case node.ProcUserTime:
		return omis.Seconds(uint64(info.UserTime))
	case node.ProcQueuedTime:
		return omis.Seconds(uint64(info.QueuedTime))
	}
	return omis.Int(procNumber(bit, info))
}

func procNumber(bit node.ProcFields, info *node.ProcInfo) int64 {
	switch bit {
	case node.ProcUID:
		return info.UID
	case node.ProcGID:
		return info.GID
	case node.ProcSchedulingState:
		return int64(info.State)
	case node.ProcPriority:
		return info.Priority
	case node.ProcMemorySize:
		return info.MemorySize
	case node.ProcResidentSize:
		return info.ResidentSize
	case node.ProcMaxResidentSize:
		return info.MaxResidentSize
	case node.ProcIntResidentSize:
		return info.IntResidentSize
	case node.ProcMinorPageFaults:
		return info.MinorFaults
	case node.ProcMajorPageFaults:
		return info.MajorFaults
	case node.ProcSwaps:
		return info.Swaps
	case node.ProcFileInput:
		return info.FileInput
	case node.ProcFileOutput:
		return info.FileOutput
	case node.ProcVolContSwitch:
		return info.VoluntarySwitches
	case node.ProcInvolContSwitch:
		return info.InvoluntaryOnes
	case node.ProcReadBytes:
		return info.ReadBytes
	case node.ProcWrittenBytes:
		return info.WrittenBytes
	case node.ProcHeap:
		return info.Heap
	}
	return info.NonHeap
}

// parentToken returns the token of the parent, if that is in the scope, too.
func (x *execution) parentToken(n *machine, pid int) omis.Token {
	if p := x.e.reg.byPID(n, pid); p != nil && x.tool.sees(p) {
		return p.token
	}
	return omis.Undefined
}

func stringList(list []string) omis.Value { return omis.List(mapped(list, omis.String)...) }

func procGetLoaderInfo(x *execution, c *call) ([]omis.Value, error) {
	at := c.object.(*process).at()
	modules, err := at.node.Modules(at.id)
	if err != nil {
		return nil, err
	}
	var list []omis.Value
	for _, m := range modules {
		list = append(list, omis.String(m.Path), omis.String(""),
			omis.Uint(m.CodeStart), omis.Uint(m.CodeLen),
			omis.Uint(m.DataStart), omis.Uint(m.DataLen),
			omis.Uint(m.BSSStart), omis.Uint(m.BSSLen))
	}
	return []omis.Value{omis.Int(int64(len(modules))), omis.List(list...)}, nil
}
