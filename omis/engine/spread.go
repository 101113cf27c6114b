package engine

import (
	"runtime"
	"slices"
	"sync"

	"mirador/omis"
)

// job is one service on the objects of one node.
type job struct {
	call    call
	objs    []object
	results omis.ServiceResult
}

// share is a step that was divided by nodes.
type share struct {
	step    *step
	jobs    []*job // in the order of the nodes
	failed  omis.ServiceResult
	objects int
	at      int // index in the reply
}

// segment is a list of steps whose nodes work concurrently: each node executes them one after the other,
// which is the only order that OMIS 7.2.3 requires up to a semicolon.
type segment struct {
	shares []*share
	queues map[*machine][]*job
}

// runSpread executes steps that touch several nodes. Steps that change scopes or requests are executed
// alone, in between.
func (x *execution) runSpread(reply omis.Reply, steps []step) omis.Reply {
	var seg segment
	for i := range steps {
		s := &steps[i]
		if s.do.spread {
			seg.add(x, s, len(reply))
			reply = append(reply, nil)
		} else {
			x.flush(&seg, reply)
			reply = append(reply, x.step(s))
			x.raiseAll()
		}
		if s.barrier {
			x.flush(&seg, reply)
		}
	}
	x.flush(&seg, reply)
	return reply
}

// add converts the tokens of a step and gives its objects to their nodes.
func (g *segment) add(x *execution, s *step, at int) {
	part := &share{step: s, at: at}
	g.shares = append(g.shares, part)
	c, failed := x.bound(s)
	if failed != nil {
		part.failed = failed
		return
	}
	objs, failed := x.objectsOf(s, c.args[s.subject], s.service.Params[s.subject])
	part.failed, part.objects = failed, len(objs)+len(failed)
	byNode := make(map[*machine]*job)
	for _, o := range objs {
		n := nodeOf(o)
		if byNode[n] == nil {
			byNode[n] = &job{call: c}
		}
		byNode[n].objs = append(byNode[n].objs, o)
	}
	for _, n := range x.e.nodes {
		if j := byNode[n]; j != nil {
			part.jobs = append(part.jobs, j)
			g.enqueue(n, j)
		}
	}
}

func (g *segment) enqueue(n *machine, j *job) {
	if g.queues == nil {
		g.queues = make(map[*machine][]*job)
	}
	g.queues[n] = append(g.queues[n], j)
}

// flush executes the steps on all nodes concurrently, and enters the results into the reply.
func (x *execution) flush(g *segment, reply omis.Reply) {
	var working sync.WaitGroup
	for _, jobs := range g.queues {
		working.Go(func() {
			for _, j := range jobs {
				x.do(j, x.work)
			}
		})
	}
	working.Wait()
	for _, part := range g.shares {
		results := part.failed
		for _, j := range part.jobs {
			results = append(results, j.results...)
		}
		reply[part.at] = part.step.finish(results, part.objects)
	}
	*g = segment{}
	x.raiseAll()
}

// crowd is the number of objects that are worth a goroutine.
const crowd = 32

// workCrowd executes a service on many objects concurrently, on all processors. The results are in the
// order of the objects.
func (x *execution) workCrowd(c call, objs []object) (results omis.ServiceResult) {
	workers := min(runtime.GOMAXPROCS(0), len(objs)/crowd)
	jobs := make([]job, 0, workers)
	for part := range slices.Chunk(objs, (len(objs)+workers-1)/workers) {
		jobs = append(jobs, job{call: c, objs: part})
	}
	var working sync.WaitGroup
	for i := range jobs[1:] {
		working.Go(func() { x.do(&jobs[1+i], x.workInTurn) })
	}
	x.do(&jobs[0], x.workInTurn)
	working.Wait()
	for i := range jobs {
		results = append(results, jobs[i].results...)
	}
	return results
}

// do lets a panic end only one job.
func (x *execution) do(j *job, work func(call, []object) omis.ServiceResult) {
	defer func() {
		if r := recover(); r != nil {
			failed := x.e.panicked(j.call.service.Name, r)
			failed.Objects = tokens(j.objs)
			j.results = omis.ServiceResult{failed}
		}
	}()
	j.results = work(j.call, j.objs)
}
