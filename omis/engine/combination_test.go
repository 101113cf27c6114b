package engine_test

import (
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/ext/pa"
)

// TestFilterExample executes the filter of OMIS 8.2.2.
func TestFilterExample(t *testing.T) {
	b := start(t, pa.New())
	p := b.node.Add(2, nil, 11)
	b.ask(`: proc_attach3([],2,"") user_event_create()`)
	b.ask(`thread_has_started_lib_call([p_1], "MPI_Send") : pa_filter($par4, p_5, e_1)`)
	c := b.listen("user_event_has_been_raised(e_1) : print([$proc,$par1])", omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	for i, to := range []omis.Token{"p_4", "p_5", "p_6"} {
		p.Call(11, "MPI_Send", omis.Int(0), omis.Int(int64(i)), omis.Int(0), omis.Int(0), omis.TokenValue(to))
	}
	c.want("0 OMIS_CSR_TRIGGERED(10) [e_1] c_2\n1 OMIS_OK [] 2,[p_1,1]\n")
	b.want(": user_event_destroy(e_1) pa_filter(1,1,e_1)", "0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_UNKNOWN_OBJECT(24) [] \"no such user event token: e_1\"\n")
}

// TestCombinationsOfEvents executes the combinations of OMIS 5.6. The thread is held until the lists
// that wait for the combination are done.
func TestCombinationsOfEvents(t *testing.T) {
	b := start(t, pa.New())
	p, q := b.node.Add(1, nil, 11), b.node.Add(2, nil, 21)
	b.ask(`: proc_attach3([],1,"") proc_attach3([],2,"") thread_get_info([],0)`)
	b.want(": user_event_create() pa_and_create(2,e_1) user_event_create() pa_sequence_create(2,[e_2]) user_event_create() pa_count_create(3,e_3)",
		"0 OMIS_OK []\n1 OMIS_OK [] e_1\n2 OMIS_OK [] pa_k_1\n3 OMIS_OK [] e_2\n4 OMIS_OK [] pa_k_2\n5 OMIS_OK [] e_3\n6 OMIS_OK [] pa_k_3\n")
	b.ask("thread_reached_addr([p_1],0x10) : pa_combination_signal([],1)")
	b.ask("thread_reached_addr([p_2],0x20) : pa_combination_signal([pa_k_1,pa_k_2],2) pa_combination_signal([pa_k_3],1)")
	var heard []*listener
	for _, e := range []string{"e_1", "e_2", "e_3"} {
		heard = append(heard, b.listen("user_event_has_been_raised("+e+") : print([$thread]) thread_stop([$thread])", omis.DontReturnEnDis))
	}
	b.ask(": csr_enable([])")
	triggered := func(i int, thread string) {
		t.Helper()
		e := string(rune('1' + i))
		heard[i].want("0 OMIS_CSR_TRIGGERED(10) [e_" + e + "] c_" + string(rune('3'+i)) + "\n1 OMIS_OK [] 1,[" + thread + "]\n2 OMIS_OK []\n")
	}
	q.Reach(21, 0x20, 0)
	p.Reach(11, 0x10, 0)
	triggered(0, "t_1")
	heard[1].quiet()
	if len(p.StoppedThreads()) != 1 {
		t.Error("the thread continued before the list was done")
	}
	q.Reach(21, 0x20, 0)
	triggered(1, "t_2")
	triggered(2, "t_2")
	if got := b.ask(": pa_combination_signal([pa_k_1],3) pa_and_create(0,e_1) pa_combination_delete([]) pa_combination_reset([pa_k_1])"); strings.Count(got, "OMIS_PARAMETER_ERROR") != 2 || !strings.Contains(got, "no such pa_k token") {
		t.Error(got)
	}
}

func TestIntegratorService(t *testing.T) {
	b := start(t, pa.New())
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"") pa_integrator_create() thread_get_info([],0)`)
	b.ask(`thread_has_ended_lib_call([],"read") : pa_integrator_add([pa_i_1],$par1)`)
	b.ask(": csr_enable([])")
	p.Call(11, "read", omis.Int(4))
	p.Call(12, "read", omis.Float(-1.5))
	p.Call(11, "read", omis.Int(2))
	p.Call(11, "read", omis.String("x"))
	b.want(": pa_integrator_read([],0) pa_integrator_read([],1) pa_integrator_read([],2) pa_integrator_read([],3)",
		`0 OMIS_OK []
1 OMIS_OK [pa_i_1] 2,[p_1,t_1,2,2.0,6.0,20.0,2.0,4.0,p_1,t_2,1,-1.5,-1.5,2.25,-1.5,-1.5]
2 OMIS_OK [pa_i_1] 1,[p_1,u_0,3,-1.5,4.5,22.25,-1.5,4.0]
3 OMIS_OK [pa_i_1] 1,[u_0,u_0,3,-1.5,4.5,22.25,-1.5,4.0]
4 OMIS_PARAMETER_ERROR(28) [pa_i_1] "the level is 0 (threads), 1 (processes) or 2 (in total)"
`)
	b.want(": pa_integrator_reset([]) pa_integrator_read([],2) pa_integrator_delete([])", "0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK [pa_i_1] 0,[]\n3 OMIS_OK []\n")
}
