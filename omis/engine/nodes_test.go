package engine_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/program"
)

// two is an engine with two nodes and an attached process on each: p_1 with t_1 on the node "here",
// p_2 with t_2 on the node "there".
type two struct {
	*bench
	here, there *fake.Node
	p, q        *fake.Process

	mu     sync.Mutex
	script func(node, method string) error
}

func startTwo(t testing.TB) *two {
	w := &two{here: fake.New("here"), there: fake.New("there")}
	w.there.Disk = w.here.Disk
	for name, n := range map[string]*fake.Node{"here": w.here, "there": w.there} {
		n.Script = func(method string) error { return w.played(name, method) }
	}
	w.bench = startOver(t, []program.Machine{w.here, w.there}, []*fake.Node{w.here, w.there})
	w.p, w.q = w.here.Add(1, []string{"a"}, 11), w.there.Add(1, []string{"b"}, 11)
	w.want(`: node_attach2("here") node_attach2("there") proc_attach3([],1,"") thread_get_info([],0x40)`,
		"0 OMIS_OK []\n1 OMIS_OK [] n_1\n2 OMIS_OK [] n_2\n3 OMIS_OK [n_1] p_1\n3 OMIS_OK [n_2] p_2\n4 OMIS_OK [t_1] n_1\n4 OMIS_OK [t_2] n_2\n")
	return w
}

func (w *two) play(script func(node, method string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.script = script
}

func (w *two) played(node, method string) error {
	w.mu.Lock()
	script := w.script
	w.mu.Unlock()
	if script == nil {
		return nil
	}
	return script(node, method)
}

// TestTwoNodes checks that actions are executed on the nodes of their objects. The two processes have the
// same pid.
func TestTwoNodes(t *testing.T) {
	w := startTwo(t)
	w.want(": proc_get_info([],2) proc_get_info([n_2],0x100) node_get_info([t_2],1) thread_stop([p_2])",
		"0 OMIS_OK []\n1 OMIS_OK [p_1] [\"a\"]\n1 OMIS_OK [p_2] [\"b\"]\n2 OMIS_OK [p_2] n_2\n3 OMIS_OK [n_2] \"there\"\n4 OMIS_OK []\n")
	if len(w.p.StoppedThreads()) != 0 || len(w.q.StoppedThreads()) != 1 {
		t.Error("the wrong process was stopped")
	}
	w.want(`: proc_create([n_2],"/bin/c",[],[],[]) proc_get_info([p_3],0x100)`, "0 OMIS_OK []\n1 OMIS_OK [n_2] p_3\n2 OMIS_OK [p_3] n_2\n")
	if len(w.there.Launched()) != 1 || len(w.here.Launched()) != 0 {
		t.Error("the process was created on the wrong node")
	}
	w.want(": node_detach([n_2]) proc_get_info([],0) thread_get_info([t_2],0)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK [p_1]\n3 OMIS_UNKNOWN_OBJECT(24) [t_2] \"t_2 is not attached to this tool\"\n")
	if got := w.ask(`: node_attach2("elsewhere")`); !strings.Contains(got, `this monitor observes \"here\", \"there\"`) {
		t.Error(got)
	}
}

// TestBarrierAcrossNodes checks that the nodes execute the actions before a semicolon concurrently, and
// that the actions after it begin when all those are done.
func TestBarrierAcrossNodes(t *testing.T) {
	w := startTwo(t)
	met := make(chan struct{}, 2)
	both := make(chan struct{})
	var order []string
	var mu sync.Mutex
	w.play(func(node, method string) error {
		switch method {
		case "Stop":
			met <- struct{}{}
			if len(met) == 2 {
				close(both)
			}
			select {
			case <-both: // the other node has also begun
			case <-time.After(30 * time.Second):
				return omis.Errorf(omis.OSError, "the nodes do not work at the same time")
			}
		case "SetPriority":
			time.Sleep(time.Duration(len(node)-4) * 20 * time.Millisecond) // the node "there" is slow
		}
		mu.Lock()
		defer mu.Unlock()
		order = append(order, node+" "+method)
		return nil
	})
	w.want(": thread_stop([]) proc_set_priority([],1) ; proc_send_signal([],10)", "0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK []\n3 OMIS_OK []\n")
	place := func(what string) int {
		for i, o := range order {
			if o == what {
				return i
			}
		}
		t.Fatalf("%s is not among %v", what, order)
		return 0
	}
	for _, node := range []string{"here", "there"} {
		if place(node+" Stop") > place(node+" SetPriority") {
			t.Errorf("%s did not keep the order of the actions: %v", node, order)
		}
	}
	if place("here Signal") < place("there SetPriority") {
		t.Errorf("an action after the semicolon began too early: %v", order)
	}
}

// TestOneNodeFails checks that only the objects of a node that fails have errors.
func TestOneNodeFails(t *testing.T) {
	w := startTwo(t)
	w.play(func(node, method string) error {
		if node == "there" {
			return omis.Errorf(omis.OSError, "node there does not answer")
		}
		return nil
	})
	w.want(": thread_stop([]) proc_get_info([],2) ; proc_set_priority([],3) thread_get_info([],0) proc_get_info([p_2],0)",
		`0 OMIS_OK []
1 OMIS_OS_ERROR(30) [p_2] "node there does not answer"
1 OMIS_OK []
2 OMIS_OK [p_1] ["a"]
2 OMIS_OS_ERROR(30) [p_2] "node there does not answer"
3 OMIS_OS_ERROR(30) [p_2] "node there does not answer"
3 OMIS_OK []
4 OMIS_OS_ERROR(30) [p_2] "node there does not answer"
4 OMIS_OK [t_1]
5 OMIS_OK [p_2]
`)
	w.ask("thread_reached_addr([],0x10) : print([])")
	w.want(": csr_enable([])", "0 OMIS_OK []\n1 OMIS_OS_ERROR|OMIS_FATAL(31) [c_1] \"enabled for 1 of 2 processes; for p_2: node there does not answer\"\n")
	if len(w.p.StoppedThreads()) != 1 || w.p.Nice != 3 {
		t.Error("the other node did not execute the actions")
	}
}

// TestLocksOverNodes checks that a locked list locks exactly the nodes of its objects.
func TestLocksOverNodes(t *testing.T) {
	w := startTwo(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.play(func(node, method string) error {
		if method == "SetPriority" {
			once.Do(func() { close(entered); <-leave })
		}
		return nil
	})
	locked := make(chan string)
	go func() { locked <- w.ask(": { proc_set_priority([p_2],1) }") }()
	<-entered
	w.want(": thread_stop([p_1])", "0 OMIS_OK []\n1 OMIS_OK []\n") // another node
	other := make(chan string)
	go func() { other <- w.ask(": thread_stop([])") }() // both nodes
	select {
	case got := <-other:
		t.Errorf("a list was executed during a locked list: %s", got)
	case <-time.After(20 * time.Millisecond):
	}
	close(leave)
	<-locked
	<-other
	if len(w.q.StoppedThreads()) != 1 {
		t.Error("the list that waited was not executed")
	}
}

// TestEventsOfTwoNodes checks that an event has the node of its process, and that the times of both nodes
// are comparable.
func TestEventsOfTwoNodes(t *testing.T) {
	w := startTwo(t)
	c := w.listen("thread_reached_addr([],0x10) : print([$node,$proc,$thread]) thread_stop([])", omis.DontReturnEnDis)
	d := w.listen("thread_reached_addr([],0x20) : print([$time])", omis.DontReturnEnDis)
	w.ask(": csr_enable([])")
	w.q.Reach(11, 0x10, 0)
	c.want("0 OMIS_CSR_TRIGGERED(10) [t_2] c_1\n1 OMIS_OK [] 3,[n_2,p_2,t_2]\n2 OMIS_OK []\n")
	if len(w.p.StoppedThreads()) != 1 || len(w.q.StoppedThreads()) != 1 {
		t.Error("an event of one node did not stop the other")
	}
	last := 0.0
	for _, p := range []*fake.Process{w.p, w.q, w.p, w.q} {
		p.Reach(11, 0x20, 0)
		now := (<-d.replies)[1][0].Values[1].List[0].Float
		if now < last-1e-3 || now > last+10 && last > 0 {
			t.Errorf("the time is %f after %f", now, last)
		}
		last = now
	}
}

func TestMigration(t *testing.T) {
	w := startTwo(t)
	c := w.listen("proc_will_be_migrated([]) : print([$proc,$node,$dest_node])", omis.DontReturnEnDis)
	d := w.listen("proc_has_been_migrated([]) : print([$proc,$node])", omis.DontReturnEnDis)
	h := w.listen("thread_reached_addr([p_1],0x10) : print([$node,$thread])", omis.DontReturnEnDis)
	n := w.listen("thread_reached_addr([n_1],0x20) : print([])", 0)
	w.ask(": csr_enable([])")
	<-n.replies
	w.want(": proc_migrate([p_1],n_2) proc_get_info([p_1],0x102) thread_get_info([t_1],0x40)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK [p_1] [\"a\"],n_2\n3 OMIS_OK [t_1] n_2\n")
	c.want("0 OMIS_CSR_TRIGGERED(10) [p_1] c_1\n1 OMIS_OK [] 3,[p_1,n_1,n_2]\n")
	d.want("0 OMIS_CSR_TRIGGERED(10) [p_1] c_2\n1 OMIS_OK [] 2,[p_1,n_2]\n")
	n.want("0 OMIS_CSR_DISABLED(6) [] c_4\n1 OMIS_OK [p_1]\n")
	moved := w.there.Process(5001)
	if moved == nil || len(moved.StoppedThreads()) != 0 {
		t.Fatal("the process does not run on the other node")
	}
	moved.Reach(11, 0x10, 0)
	h.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_3\n1 OMIS_OK [] 2,[n_2,t_1]\n")
	moved.End()
	eventually(t, func() bool { return len(w.objects(": proc_get_info([],0)", 1)) == 1 })
}

// TestMigrationFails checks that a migration that fails does not change the process.
func TestMigrationFails(t *testing.T) {
	w := startTwo(t)
	h := w.listen("thread_reached_addr([p_1],0x10) : print([$node])", omis.DontReturnEnDis)
	w.ask(": csr_enable([])")
	for _, failing := range []string{"here Checkpoint", "there Restore", "here Signal"} {
		w.play(func(node, method string) error {
			if node+" "+method == failing {
				return omis.Errorf(omis.OSError, "the disk is full")
			}
			return nil
		})
		w.want(": proc_migrate([p_1],n_2) proc_get_info([p_1],0x100)",
			"0 OMIS_OK []\n1 OMIS_OS_ERROR(30) [p_1] \"the disk is full\"\n2 OMIS_OK [p_1] n_1\n")
		w.p.Reach(11, 0x10, 0)
		h.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_OK [] 1,[n_1]\n")
		if len(w.p.StoppedThreads()) != 0 {
			t.Errorf("%s: the process is stopped", failing)
		}
	}
	if w.there.Process(5001) != nil {
		t.Error("a copy of the process is left")
	}
}
