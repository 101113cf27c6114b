package engine_test

import (
	"sync"
	"testing"
	"time"
)

// All conversions of one execution agree (OMIS 7.2.2): what comes on a node that
// was not there when the list began to convert is not seen by the rest of the list.
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
	arrive(`: proc_attach([p_2])`) // its node comes with it
	w.want(": node_get_info([],1) ; proc_get_info([],0) ; thread_get_info([],0) node_get_info([],1)",
		"0 OMIS_OK []\n1 OMIS_OK [n_1] \"here\"\n2 OMIS_OK [p_1]\n3 OMIS_OK [t_1]\n4 OMIS_OK [n_1] \"here\"\n")
	w.want(": proc_get_info([],0)", "0 OMIS_OK []\n1 OMIS_OK [p_1,p_2]\n")

	// The other way round: a node that came after the processes were looked up.
	w.ask(": node_detach([n_2])")
	once = sync.Once{}
	w.want(": proc_set_priority([],1) ; node_get_info([],1)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK [n_1] \"here\"\n")
	w.want(": node_get_info([],0)", "0 OMIS_OK []\n1 OMIS_OK [n_1,n_2]\n")

	// What a list itself attaches to, its later actions see.
	w.ask(": node_detach([n_2])")
	w.want(`: node_get_info([],0) proc_get_info([],0) node_attach([n_2]) proc_attach([p_2]) node_get_info([],0) proc_get_info([],0)`,
		"0 OMIS_OK []\n1 OMIS_OK [n_1]\n2 OMIS_OK [p_1]\n3 OMIS_OK []\n4 OMIS_OK []\n5 OMIS_OK [n_1,n_2]\n6 OMIS_OK [p_1,p_2]\n")
}

// Lists that a locked list leads to touch nodes too, and these are locked with the
// others (OMIS 7.2.3).
func TestLockedListCoversWhatItLeadsTo(t *testing.T) {
	w := startTwo(t)
	w.ask("proc_has_been_stopped([p_1]) : proc_set_priority([p_2],1)")
	w.ask(": csr_enable([])")
	entered, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.play(func(node, method string) error {
		if node == "there" && method == "SetPriority" {
			once.Do(func() { close(entered); <-leave })
		}
		return nil
	})
	locked := make(chan string)
	go func() { locked <- w.ask(": { thread_stop([p_1]) }") }()
	<-entered
	other := make(chan string)
	go func() { other <- w.ask(": proc_get_info([p_2],0)") }()
	select {
	case got := <-other:
		t.Errorf("a list was executed beside one that a locked list waits for: %s", got)
	case <-time.After(20 * time.Millisecond):
	}
	close(leave)
	<-locked
	<-other
}

// A migration touches the node it goes to as well.
func TestLockedMigration(t *testing.T) {
	w := startTwo(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.play(func(node, method string) error {
		if node == "here" && method == "Checkpoint" {
			once.Do(func() { close(entered); <-leave })
		}
		return nil
	})
	locked := make(chan string)
	go func() { locked <- w.ask(": { proc_migrate([p_1],n_2) }") }()
	<-entered
	other := make(chan string)
	go func() { other <- w.ask(": node_get_info([n_2],0)") }()
	select {
	case got := <-other:
		t.Errorf("a list was executed on the node that a locked list migrates to: %s", got)
	case <-time.After(20 * time.Millisecond):
	}
	close(leave)
	<-locked
	<-other
}
