package engine_test

import (
	"slices"
	"sync"
	"testing"

	"mirador/omis"
	"mirador/omis/service"
)

// groups is an extension whose objects contain processes, like the groups of the PVM extension
// (OMIS 9.1).
type groups struct{}

type group struct {
	mu      sync.Mutex
	members []omis.Token
}

func (groups) Prefix() string { return "g" }

func (groups) Classes() []service.Class {
	return []service.Class{
		{Class: "g_g", Contained: func(object any) []omis.Token {
			g := object.(*group)
			g.mu.Lock()
			defer g.mu.Unlock()
			return slices.Clone(g.members)
		}},
		{Class: "g_o"}, // has no conversions
	}
}

func (groups) Services() []service.Service {
	list := []service.Service{
		{Name: "g_make", Action: makeGroup("g_g"), Result: "token"},
		{Name: "g_other", Action: makeGroup("g_o"), Result: "token"},
		{Name: "g_set", Action: setGroup, Object: "g_g", Params: []service.Param{service.TokensParam("group", "g_g"), service.TokensParam("members", "")}},
	}
	for i := range list {
		list[i].Kind, list[i].Need, list[i].Role = service.Manipulation, service.Optional, service.Control
		list[i].Support, list[i].Doc = service.Support{Level: service.Full}, "for a test"
	}
	return list
}

func makeGroup(c omis.Class) service.Action {
	return func(call *service.Call) ([]omis.Value, error) {
		return []omis.Value{omis.TokenValue(call.Scope.Add(c, &group{}))}, nil
	}
}

func setGroup(call *service.Call) ([]omis.Value, error) {
	g := call.Object.(*group)
	g.mu.Lock()
	g.members = nil
	for _, v := range call.Args[1].List {
		g.members = append(g.members, v.Token())
	}
	g.mu.Unlock()
	call.Scope.Changed(call.Token)
	return nil, nil
}

// TestTokensOfExtensions checks that tokens of extensions are converted in events as in actions, and that
// an event follows changes of the objects that its token contains (OMIS 6.2, 7.2.2, 9.1).
func TestTokensOfExtensions(t *testing.T) {
	b := start(t, groups{})
	p, q := b.node.Add(1, []string{"a"}, 11, 12), b.node.Add(2, []string{"b"}, 21)
	b.ask(`: proc_attach3([],1,"") proc_attach3([],2,"") g_make() g_other() g_set([g_g_1],[p_1])`)
	b.want(": proc_get_info([g_g_1],0) thread_get_info([g_g_1,p_1],0) node_get_info([g_g_1],0) proc_get_info([g_o_1],0)",
		"0 OMIS_OK []\n1 OMIS_OK [p_1]\n2 OMIS_OK [t_1,t_2]\n3 OMIS_TYPE_MISMATCH(26) [g_g_1] \"g_g_1 cannot stand for objects of class n_ (node_list)\"\n"+
			"4 OMIS_TYPE_MISMATCH(26) [g_o_1] \"g_o_1 cannot stand for objects of class p_ (proc_list)\"\n")
	b.want("thread_reached_addr([g_o_1],0x10) : print([])",
		"0 OMIS_CSR_DEFINED(2) []\n1 OMIS_TYPE_MISMATCH(26) [g_o_1] \"g_o_1 cannot stand for objects of class t_ (thread_list)\"\n")

	c := b.listen("thread_reached_addr([g_g_1],0x10) : print([$thread])", 0)
	hit := func(thread, token omis.Token) string {
		return "0 OMIS_CSR_TRIGGERED(10) [" + string(thread) + "] c_1\n1 OMIS_OK [] 1,[" + string(token) + "]\n"
	}
	b.ask(": csr_enable([c_1])")
	p.Reach(11, 0x10, 0)
	q.Reach(21, 0x10, 0)
	c.want("0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK []\n", hit("t_1", "t_1"))

	b.ask(": g_set([g_g_1],[p_2])")
	p.Reach(11, 0x10, 0)
	q.Reach(21, 0x10, 0)
	c.want("0 OMIS_CSR_DISABLED(6) [] c_1\n1 OMIS_OK [p_1]\n", "0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK [p_2]\n", hit("t_3", "t_3"))

	b.ask(": g_set([g_g_1],[p_2,t_2])") // one of a process's two threads
	p.Reach(11, 0x10, 0)
	p.Reach(12, 0x10, 0)
	c.want("0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK [p_1]\n", hit("t_2", "t_2"))

	b.ask(": proc_detach([p_2])") // the group still contains the process, but the tool must be attached to it
	c.want("0 OMIS_CSR_DISABLED(6) [] c_1\n1 OMIS_OK [p_2]\n")
	b.ask(": proc_attach([p_2])")
	c.want("0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK [p_2]\n")
	b.ask(": g_set([g_g_1],[])")
	c.want("0 OMIS_CSR_DISABLED(6) [] c_1\n1 OMIS_OK [p_1]\n", "0 OMIS_CSR_DISABLED(6) [] c_1\n1 OMIS_OK [p_2]\n")
}
