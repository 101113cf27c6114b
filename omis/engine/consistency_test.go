package engine_test

import (
	"sync"
	"testing"
	"time"
)

// TestConversionsAgree checks that all conversions of one execution agree (OMIS 7.2.2): a node that is
// attached during the list, with its processes, is invisible to the rest of the list.
func TestConversionsAgree(t *testing.T) {
	w := startTwo(t)
	w.want(": node_detach([n_2])", "0 OMIS_OK []\n1 OMIS_OK []\n")
	var once sync.Once
	arrive := func(request string) {
		w.play(func(_, method string) error {
			if method == "NodeInfo" || method == "SetPriority" {
				once.Do(func() { w.ask(request) })
			}
			return nil
		})
	}
	arrive(`: proc_attach([p_2])`) // this also attaches the node
	w.want(": node_get_info([],1) ; proc_get_info([],0) ; thread_get_info([],0) node_get_info([],1)",
		"0 OMIS_OK []\n1 OMIS_OK [n_1] \"here\"\n2 OMIS_OK [p_1]\n3 OMIS_OK [t_1]\n4 OMIS_OK [n_1] \"here\"\n")
	w.want(": proc_get_info([],0)", "0 OMIS_OK []\n1 OMIS_OK [p_1,p_2]\n")

	// The same for a node that is attached after the list has converted processes.
	w.ask(": node_detach([n_2])")
	once = sync.Once{}
	w.want(": proc_set_priority([],1) ; node_get_info([],1)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK [n_1] \"here\"\n")
	w.want(": node_get_info([],0)", "0 OMIS_OK []\n1 OMIS_OK [n_1,n_2]\n")

	// Later actions of a list see the objects that the list itself attaches.
	w.ask(": node_detach([n_2])")
	w.want(`: node_get_info([],0) proc_get_info([],0) node_attach([n_2]) node_get_info([],0) proc_attach([p_2]) proc_get_info([],0)`,
		"0 OMIS_OK []\n1 OMIS_OK [n_1]\n2 OMIS_OK [p_1]\n3 OMIS_OK []\n4 OMIS_OK [n_1,n_2]\n5 OMIS_OK []\n6 OMIS_OK [p_1,p_2]\n")
}

// excludes executes a locked list that waits in a method of a node, and checks that another list waits
// for it.
func (w *two) excludes(locked, node, method, other string) {
	w.Helper()
	entered, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.play(func(n, m string) error {
		if n == node && m == method {
			once.Do(func() { close(entered); <-leave })
		}
		return nil
	})
	var both sync.WaitGroup
	both.Go(func() { w.ask(locked) })
	<-entered
	done := make(chan struct{})
	both.Go(func() { w.ask(other); close(done) })
	select {
	case <-done:
		w.Errorf("%s was executed during %s", other, locked)
	case <-time.After(20 * time.Millisecond):
	}
	close(leave)
	both.Wait()
}

// TestLockedListCoversTriggeredLists checks that a locked list also locks the nodes of the lists that it
// triggers (OMIS 7.2.3).
func TestLockedListCoversTriggeredLists(t *testing.T) {
	w := startTwo(t)
	w.ask("proc_has_been_stopped([p_1]) : proc_set_priority([p_2],1)")
	w.ask(": csr_enable([])")
	w.excludes(": { thread_stop([p_1]) }", "there", "SetPriority", ": proc_get_info([p_2],0)")
}

// TestLockedMigration checks that a migration locks its destination too.
func TestLockedMigration(t *testing.T) {
	startTwo(t).excludes(": { proc_migrate([p_1],n_2) }", "here", "Checkpoint", ": node_get_info([n_2],0)")
}
