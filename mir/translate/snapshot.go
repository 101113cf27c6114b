package translate

import (
	"fmt"
	"path"
	"slices"
	"strconv"

	"mirador/mir"
	"mirador/omis"
	"mirador/omis/node"
)

// Resolver formats an address of a process for a person. first is true for the innermost
// frame, whose address is the address of the current instruction. The other frames have return
// addresses, after the call.
type Resolver func(process omis.Token, pc uint64, first bool) string

// Snapshot is a translated snapshot request: the request to send, and the settings for reading
// the reply.
type Snapshot struct {
	Request    string
	node       Node
	named      bool
	stack      int
	goroutines bool
}

// Goroutines lists the goroutines of a process, each with up to depth frames.
type Goroutines func(process omis.Token, depth int) ([]node.GoroutineInfo, error)

// NewSnapshot translates a snapshot request. Empty lists mean the whole application, because
// each application has its own tool. node is the machine of its processes.
func NewSnapshot(r *mir.SnapshotRequest, machine Node) Snapshot {
	procs, threads := node.ProcLocalID, node.ThreadProcess|node.ThreadLocalID
	if r.Named {
		procs |= node.ProcArgv
		threads |= node.ThreadName
	}
	request := fmt.Sprintf(": proc_get_info([],%#x) thread_get_info([],%#x)", procs, threads)
	if r.Stack > 0 {
		request += fmt.Sprintf(" thread_get_backtrace([],%d)", r.Stack)
	}
	return Snapshot{Request: request, node: machine, named: r.Named, stack: r.Stack, goroutines: r.Goroutines}
}

// Read builds the snapshot from the reply. No service of OMIS reports goroutines, so it asks
// list for them.
func (s Snapshot) Read(reply omis.Reply, resolve Resolver, list Goroutines) (*mir.Snapshot, error) {
	processes, err := s.Processes(reply)
	if err != nil {
		return nil, err
	}
	stacks, err := s.stacks(reply)
	if err != nil {
		return nil, err
	}
	var entities []mir.Entity
	for _, p := range processes {
		e := mir.Entity{Kind: mir.Process, ID: string(p.Token), Name: p.Name}
		for _, t := range p.Threads {
			th := mir.Entity{Kind: mir.Thread, ID: string(t.Token), Name: t.Name, Master: t.Master}
			for i, pc := range stacks[t.Token] {
				th.Stack = append(th.Stack, resolve(p.Token, pc, i == 0))
			}
			e.Children = append(e.Children, th)
		}
		if s.goroutines {
			if e.Goroutines, err = s.listed(p, resolve, list); err != nil {
				return nil, err
			}
		}
		entities = append(entities, e)
	}
	return s.document(entities), nil
}

// Processes reads the processes with their threads from the reply, in the order of their
// tokens. It omits threads of processes that ended between two of the services.
func (s Snapshot) Processes(reply omis.Reply) ([]Process, error) {
	if err := replyError(reply); err != nil {
		return nil, err
	}
	var processes []Process
	for r, err := range results(reply, 1) {
		if err != nil {
			return nil, err
		}
		want := 1
		if s.named {
			want = 2
		}
		if len(r.Values) != want {
			return nil, unexpected("proc_get_info", r)
		}
		pid, ok := r.Values[want-1].Int64()
		if !ok {
			return nil, unexpected("proc_get_info", r)
		}
		for _, token := range r.Objects {
			p := Process{Token: token, PID: int(pid)}
			if s.named {
				p.Name = programName(r.Values[0])
			}
			processes = append(processes, p)
		}
	}
	slices.SortFunc(processes, func(p, q Process) int { return compare(p.Token, q.Token) })
	return processes, s.threads(reply, processes)
}

// programName returns argv[0] without its directory.
func programName(argv omis.Value) string {
	if len(argv.List) == 0 || argv.List[0].Str == "" {
		return ""
	}
	return path.Base(argv.List[0].Str)
}

// threads adds the threads to their processes.
func (s Snapshot) threads(reply omis.Reply, processes []Process) error {
	byToken := make(map[omis.Token]*Process, len(processes))
	for i := range processes {
		byToken[processes[i].Token] = &processes[i]
	}
	for r, err := range results(reply, 2) {
		if err != nil {
			return err
		}
		if len(r.Values) < 2 {
			return unexpected("thread_get_info", r)
		}
		p := byToken[r.Values[0].Token()]
		if p == nil {
			continue
		}
		tid, _ := r.Values[1].Int64()
		for _, token := range r.Objects {
			th := Thread{Token: token, TID: int(tid), Master: int(tid) == p.PID}
			if s.named && len(r.Values) > 2 {
				th.Name = r.Values[2].Str
			}
			p.Threads = append(p.Threads, th)
		}
	}
	for _, p := range processes {
		slices.SortFunc(p.Threads, func(t, u Thread) int { return compare(t.Token, u.Token) })
	}
	return nil
}

func (s Snapshot) stacks(reply omis.Reply) (map[omis.Token][]uint64, error) {
	if s.stack == 0 {
		return nil, nil
	}
	stacks := make(map[omis.Token][]uint64)
	for r, err := range results(reply, 3) {
		if err != nil {
			return nil, err
		}
		if len(r.Values) != 2 {
			return nil, unexpected("thread_get_backtrace", r)
		}
		var pcs []uint64
		for i := 0; i+1 < len(r.Values[1].List); i += 2 {
			pc, _ := r.Values[1].List[i].Uint64()
			pcs = append(pcs, pc)
		}
		for _, token := range r.Objects {
			stacks[token] = pcs
		}
	}
	return stacks, nil
}

// listed returns the goroutines of a process.
func (s Snapshot) listed(p Process, resolve Resolver, list Goroutines) (found []mir.Goroutine, err error) {
	all, err := list(p.Token, s.stack)
	if err != nil {
		return nil, err
	}
	for _, g := range all {
		e := mir.Goroutine{ID: strconv.FormatUint(g.ID, 10), State: g.State, Reason: g.Reason}
		if i := slices.IndexFunc(p.Threads, func(t Thread) bool { return t.TID == g.TID }); i >= 0 {
			e.Thread = string(p.Threads[i].Token)
		}
		for i, f := range g.Frames {
			e.Stack = append(e.Stack, resolve(p.Token, f.PC, i == 0))
		}
		found = append(found, e)
	}
	return found, nil
}

// document puts the processes inside their node and its site, whose ids requests may use.
func (s Snapshot) document(processes []mir.Entity) *mir.Snapshot {
	if s.node.Token == "" { // unknown
		return &mir.Snapshot{Entities: processes}
	}
	node := mir.Entity{Kind: mir.Node, ID: string(s.node.Token), Children: processes}
	if s.named {
		node.Name = s.node.Name
	}
	if s.node.Site == "" {
		return &mir.Snapshot{Entities: []mir.Entity{node}}
	}
	site := mir.Entity{Kind: mir.Site, ID: s.node.Site, Children: []mir.Entity{node}}
	if s.named {
		site.Name = s.node.Site
	}
	return &mir.Snapshot{Entities: []mir.Entity{site}}
}
