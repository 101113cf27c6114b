package translate

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"

	"mirador/mir"
	"mirador/omis"
	"mirador/omis/node"
)

// Resolver formats an address of a process for a person. first is true for the innermost
// frame, whose address is that of the current instruction. The address of the other frames is
// a return address, after the call.
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

// Read builds the snapshot from the reply. It omits objects that ended between two of the
// services. No service of OMIS reports goroutines, so it asks list for them.
func (s Snapshot) Read(reply omis.Reply, resolve Resolver, list Goroutines) (*mir.Snapshot, error) {
	if err := replyError(reply); err != nil {
		return nil, err
	}
	procs, err := s.processes(reply)
	if err != nil {
		return nil, err
	}
	stacks, err := s.stacks(reply)
	if err != nil {
		return nil, err
	}
	if err := s.threads(reply, procs, stacks, resolve); err != nil {
		return nil, err
	}
	if s.goroutines {
		for token, p := range procs {
			if err := s.addGoroutines(token, p, resolve, list); err != nil {
				return nil, err
			}
		}
	}
	return s.document(procs), nil
}

type seenProcess struct {
	entity  mir.Entity
	pid     int64
	threads map[int64]omis.Token
}

func (s Snapshot) processes(reply omis.Reply) (map[omis.Token]*seenProcess, error) {
	procs := make(map[omis.Token]*seenProcess)
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
			p := &seenProcess{entity: mir.Entity{Kind: mir.Process, ID: string(token)}, pid: pid, threads: make(map[int64]omis.Token)}
			if s.named {
				p.entity.Name = programName(r.Values[0])
			}
			procs[token] = p
		}
	}
	return procs, nil
}

// programName returns argv[0] without its directory.
func programName(argv omis.Value) string {
	if len(argv.List) == 0 || argv.List[0].Str == "" {
		return ""
	}
	return path.Base(argv.List[0].Str)
}

func (s Snapshot) threads(reply omis.Reply, procs map[omis.Token]*seenProcess, stacks map[omis.Token][]uint64, resolve Resolver) error {
	for r, err := range results(reply, 2) {
		if err != nil {
			return err
		}
		if len(r.Values) < 2 {
			return unexpected("thread_get_info", r)
		}
		proc, tid := procs[r.Values[0].Token()], int64(0)
		if tid, _ = r.Values[1].Int64(); proc == nil {
			continue
		}
		for _, token := range r.Objects {
			th := mir.Entity{Kind: mir.Thread, ID: string(token), Master: tid == proc.pid}
			if s.named && len(r.Values) > 2 {
				th.Name = r.Values[2].Str
			}
			for i, pc := range stacks[token] {
				th.Stack = append(th.Stack, resolve(r.Values[0].Token(), pc, i == 0))
			}
			proc.entity.Children = append(proc.entity.Children, th)
			proc.threads[tid] = token
		}
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

func (s Snapshot) addGoroutines(token omis.Token, p *seenProcess, resolve Resolver, list Goroutines) error {
	all, err := list(token, s.stack)
	if err != nil {
		return err
	}
	for _, g := range all {
		e := mir.Goroutine{ID: strconv.FormatUint(g.ID, 10), State: g.State, Reason: g.Reason, Thread: string(p.threads[int64(g.TID)])}
		for i, f := range g.Frames {
			e.Stack = append(e.Stack, resolve(token, f.PC, i == 0))
		}
		p.entity.Goroutines = append(p.entity.Goroutines, e)
	}
	return nil
}

// document puts the processes inside their node, whose id requests may use.
func (s Snapshot) document(procs map[omis.Token]*seenProcess) *mir.Snapshot {
	node := mir.Entity{Kind: mir.Node, ID: string(s.node.Token)}
	if s.named {
		node.Name = s.node.Name
	}
	for _, p := range procs {
		sortEntities(p.entity.Children)
		node.Children = append(node.Children, p.entity)
	}
	sortEntities(node.Children)
	if node.ID == "" { // unknown
		return &mir.Snapshot{Entities: node.Children}
	}
	return &mir.Snapshot{Entities: []mir.Entity{node}}
}

func sortEntities(es []mir.Entity) {
	slices.SortFunc(es, func(a, b mir.Entity) int {
		return cmp.Or(cmp.Compare(number(omis.Token(a.ID)), number(omis.Token(b.ID))), cmp.Compare(a.ID, b.ID))
	})
}
