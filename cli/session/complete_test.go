package session

import (
	"context"
	"slices"
	"strings"
	"testing"

	gateway "mirador/http"
	"mirador/omis"
)

func tableOfNames() *names {
	return &names{ask: func(context.Context) ([]gateway.Service, error) {
		return []gateway.Service{
			{Name: "proc_attach", Kind: "manipulation", Support: "full", Prototype: "void proc_attach(token* proc_list)", Role: "control", Doc: "attach"},
			{Name: "proc_attach3", Kind: "manipulation", Support: "full"},
			{Name: "proc_checkpoint", Kind: "manipulation", Support: "unsupported"},
			{Name: "proc_has_terminated", Kind: "event", Support: "full"},
			{Name: "print", Kind: "information", Support: "full"},
		}, nil
	}}
}

func TestCompletionOfServices(t *testing.T) {
	s := &Session{}
	s.names.ask = tableOfNames().ask
	var shown []string
	complete := s.completer(t.Context())(func(text string) { shown = append(shown, text) })
	for line, want := range map[string]string{
		"proc":                          "proc_has_terminated(",
		": proc_a":                      ": proc_attach",
		": pri":                         ": print(",
		": proc_c":                      ": proc_c",
		"proc_has_terminated([]) : pri": "proc_has_terminated([]) : print(",
		`: print(["a:b(",$th`:           `: print(["a:b(",$thread`,
		`: print(["pro`:                 `: print(["pro`,
		"he":                            "help ",
		"help proc_has":                 "help proc_has_terminated",
	} {
		got, pos, ok := complete(line, len(line), '\t')
		if !ok || got != want || pos != len(want) {
			t.Errorf("%q becomes %q at %d, want %q", line, got, pos, want)
		}
	}
	if got, pos, _ := complete(": pri [1]", 5, '\t'); got != ": print( [1]" || pos != 8 {
		t.Errorf("in the middle of a line: %q at %d", got, pos)
	}
	if _, _, ok := complete("proc", 4, 'x'); ok {
		t.Error("an ordinary key completes")
	}
	complete(": proc_attach", 13, '\t')
	if len(shown) != 1 || shown[0] != "proc_attach(  proc_attach3(\n" {
		t.Errorf("shown were %q", shown)
	}
}

func TestTokensSeen(t *testing.T) {
	var n names
	n.saw(omis.Reply{
		{{Status: omis.CSRDefined, Values: []omis.Value{omis.TokenValue("c_10")}}},
		{{Objects: []omis.Token{"p_1", "c_9"}, Values: []omis.Value{omis.Tokens("t_1", omis.Undefined)}}},
	})
	if got := n.known(); !slices.Equal(got, []string{"c_9", "c_10", "p_1", "t_1"}) {
		t.Errorf("known are %v", got)
	}
	n.saw(omis.Reply{{{Status: omis.CSRDeleted, Values: []omis.Value{omis.TokenValue("c_9")}}}, {{Status: omis.UnknownObject, Objects: []omis.Token{"p_1"}}}})
	n.forgetObjects()
	if got := n.known(); !slices.Equal(got, []string{"c_10"}) {
		t.Errorf("known are %v", got)
	}
}

func TestHelp(t *testing.T) {
	n := tableOfNames()
	text, err := n.help(t.Context(), []string{"proc_attach"})
	if err != nil || !strings.Contains(text, "void proc_attach(token* proc_list)\n  attach\n  manipulation, support full") {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := n.help(t.Context(), []string{"nothing"}); err == nil {
		t.Error("help for a service that does not exist")
	}
	if text, _ := n.help(t.Context(), nil); !strings.Contains(text, "event services:\n  proc_has_terminated\n") {
		t.Error(text)
	}
}
