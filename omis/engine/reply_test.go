package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mirador/omis"
	"mirador/omis/syntax"
)

// TestOwnChangeComesAfterTheReply checks that the reply of a list that disables or deletes its own request
// precedes the reply about the change: no reply follows OMIS_CSR_DELETED.
func TestOwnChangeComesAfterTheReply(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11)
	b.ask(`: proc_attach3([],1,"") user_event_create()`)
	c := b.listen("thread_reached_addr([],0x10) : csr_disable([$csr]) print([1])", 0)
	d := b.listen("thread_reached_addr([],0x10) : csr_delete([$csr])", 0)
	e := b.listen("thread_reached_addr([],0x10) : user_event_raise(e_1,[],0) print([2])", omis.DontReturnEnDis)
	b.ask("user_event_has_been_raised(e_1) : csr_delete([c_3])")
	b.ask(": csr_enable([])")
	p.Reach(11, 0x10, 0)
	p.Reach(11, 0x10, 0)
	c.want("0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK []\n",
		"0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_OK []\n2 OMIS_OK [] 1,[1]\n",
		"0 OMIS_CSR_DISABLED(6) [] c_1\n1 OMIS_OK []\n")
	d.want("0 OMIS_CSR_ENABLED(4) [] c_2\n1 OMIS_OK []\n",
		"0 OMIS_CSR_TRIGGERED(10) [t_1] c_2\n1 OMIS_OK []\n",
		"0 OMIS_CSR_DELETED(8) [] c_2\n1 OMIS_OK []\n")
	e.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_3\n1 OMIS_OK []\n2 OMIS_OK [] 1,[2]\n",
		"0 OMIS_CSR_DELETED(8) [] c_3\n1 OMIS_OK []\n")
}

func TestIdenticalResultsAreUnified(t *testing.T) {
	b := start(t)
	for pid := 1; pid <= 3; pid++ {
		b.node.Add(pid, []string{"a", "b", "a"}[pid-1:pid], pid)
		b.ask(fmt.Sprintf(`: proc_attach3([],%d,"")`, pid))
	}
	b.want(": proc_get_info([],2) proc_read_memory([p_9,p_3,p_8],0,1,1,1)", `0 OMIS_OK []
1 OMIS_OK [p_1,p_3] ["a"]
1 OMIS_OK [p_2] ["b"]
2 OMIS_UNKNOWN_OBJECT(24) [p_9] "no such process token: p_9"
2 OMIS_UNKNOWN_OBJECT(24) [p_8] "no such process token: p_8"
2 OMIS_PARAMETER_ERROR(28) [p_3] "cannot read p_3 at 0x0: nothing is mapped there"
`)
}

// TestReplyStructure checks the structure of replies, with the three restrictions of OMIS 7.3.1, for random
// requests to two nodes that may fail.
func TestReplyStructure(t *testing.T) {
	w := startTwo(t)
	objects := []string{"p_1", "p_2", "t_1", "t_2", "n_1", "n_2", "p_7"}
	actions := []string{
		"proc_get_info(%s,0x102)", "proc_get_info(%s,0)", "thread_get_info(%s,1)", "thread_stop(%s)", "thread_continue(%s)",
		"thread_suspend(%s)", "thread_resume(%s)", "node_get_info(%s,1)", "thread_read_int_regs(%s,0,40)", "thread_get_backtrace(%s,0)",
		"proc_set_priority(%s,1)", "print(%s)", "version()", "csr_enable([])", "proc_write_memory(%s,0,1,1,[])",
	}
	rapid.Check(t, func(t *rapid.T) {
		failing := rapid.SampledFrom([]string{"", "here", "there", "both"}).Draw(t, "failing")
		w.play(func(node, method string) error {
			if failing == node || failing == "both" {
				return omis.Errorf(omis.OSError, "%s does not answer", node)
			}
			return nil
		})
		var calls []string
		for range rapid.IntRange(1, 4).Draw(t, "actions") {
			call := rapid.SampledFrom(actions).Draw(t, "action")
			if strings.Contains(call, "%s") {
				list := rapid.SliceOfNDistinct(rapid.SampledFrom(objects), 0, 3, rapid.ID).Draw(t, "objects")
				call = fmt.Sprintf(call, "["+strings.Join(list, ",")+"]")
			}
			calls = append(calls, call+rapid.SampledFrom([]string{"", " ;"}).Draw(t, "barrier"))
		}
		text := ": " + strings.TrimSuffix(strings.Join(calls, " "), " ;")
		if rapid.Bool().Draw(t, "locked") {
			text = ": {" + text[1:] + " }"
		}
		request, err := syntax.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		w.checkReply(t, request, w.reply(text))
	})
}

func (w *two) checkReply(t *rapid.T, request *omis.Request, r omis.Reply) {
	if r[0][0].Status.IsError() {
		t.Fatalf("%s was refused: %s", syntax.Print(request), syntax.PrintReply(r))
	}
	if len(r) != 1+len(request.Actions) {
		t.Fatalf("%d elements for %d actions", len(r), len(request.Actions))
	}
	for i, call := range request.Actions {
		s := w.engine.Catalog().Lookup(call.Service)
		var seen []omis.Token
		for k, o := range r[i+1] {
			switch {
			case o.Status == omis.OK && !s.Void() && s.Object != "":
				for _, token := range o.Objects {
					if token.Class() != s.Object {
						t.Fatalf("%s: %s is no object of class %s\n%s", s.Name, token, s.Object, syntax.PrintReply(r))
					}
				}
				if len(o.Objects) == 0 {
					t.Fatalf("%s: a result without objects\n%s", s.Name, syntax.PrintReply(r))
				}
			case o.Status == omis.OK && s.Object != "" && (len(o.Objects) > 0 || k != len(r[i+1])-1 || len(o.Values) > 0):
				t.Fatalf("%s: %v must be the last result, without objects and values\n%s", s.Name, o, syntax.PrintReply(r))
			case s.Object == "" && len(o.Objects) > 0:
				t.Fatalf("%s works on no objects\n%s", s.Name, syntax.PrintReply(r))
			}
			for _, token := range o.Objects {
				if slices.Contains(seen, token) {
					t.Fatalf("%s: %s has two results\n%s", s.Name, token, syntax.PrintReply(r))
				}
				seen = append(seen, token)
			}
		}
	}
}
