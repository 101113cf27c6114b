package engine_test

import (
	"context"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/engine/fake"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/omis/service"
	"mirador/omis/syntax"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is an engine with a fake node and a tool.
type bench struct {
	testing.TB
	node   *fake.Node
	engine *engine.Engine
	tool   *engine.Tool
}

// plain hides the capabilities of a node beyond node.Node.
type plain struct{ node.Node }

func (plain) Capabilities() program.Capabilities { return program.Capabilities{} }

func start(t testing.TB, extensions ...service.Extension) *bench {
	t.Helper()
	n := fake.New("here")
	return startOver(t, []program.Machine{n}, []*fake.Node{n}, extensions...)
}

// startOver starts an engine with nodes. fakes are the fakes that the nodes wrap; the first one
// becomes the bench's node.
func startOver(t testing.TB, nodes []program.Machine, fakes []*fake.Node, extensions ...service.Extension) *bench {
	t.Helper()
	b := &bench{TB: t, node: fakes[0]}
	e, err := engine.NewOver(nodes, slog.New(slog.DiscardHandler), extensions...)
	if err != nil {
		t.Fatal(err)
	}
	b.engine, b.tool = e, e.Tool("test")
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		for _, n := range fakes {
			if err := n.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return b
}

// startPlain starts an engine with a node without capabilities.
func startPlain(t testing.TB, extensions ...service.Extension) *bench {
	t.Helper()
	n := fake.New("here")
	return startOver(t, []program.Machine{plain{n}}, []*fake.Node{n}, extensions...)
}

// ask sends a request and returns the reply in OMIS notation.
func (b *bench) ask(request string) string {
	b.Helper()
	return b.askBy(b.tool, request)
}

// must sends requests and fails the test if a reply has an error.
func (b *bench) must(requests ...string) {
	b.Helper()
	for _, request := range requests {
		if err := b.reply(request).Err(); err != nil {
			b.Fatalf("%s: %v", request, err)
		}
	}
}

func (b *bench) askBy(t *engine.Tool, request string) string {
	b.Helper()
	r, err := t.Request(context.Background(), request, nil, 0)
	if err != nil {
		b.Fatalf("%s: %v", request, err)
	}
	return syntax.PrintReply(r)
}

// want sends a request and compares the reply.
func (b *bench) want(request, reply string) {
	b.Helper()
	if got := b.ask(request); got != reply {
		b.Errorf("%s\n got %s\nwant %s", request, got, reply)
	}
}

func TestUnconditional(t *testing.T) {
	b := start(t)
	p := b.node.Add(812, []string{"bin/mmul", "8"}, 812, 813)
	b.want(`: print([1,"a"])`, "0 OMIS_OK []\n1 OMIS_OK [] 2,[1,\"a\"]\n")
	b.want(": proc_get_info([],0)", "0 OMIS_OK []\n1\n")
	b.want(`: proc_attach3([],812,"")`, "0 OMIS_OK []\n1 OMIS_OK [n_1] p_1\n")
	b.want(": proc_get_info([],0x202)", "0 OMIS_OK []\n1 OMIS_OK [p_1] [\"bin/mmul\",\"8\"],812\n")
	b.want(": proc_get_info([p_7,p_1],0)", "0 OMIS_OK []\n1 OMIS_UNKNOWN_OBJECT(24) [p_7] \"no such process token: p_7\"\n1 OMIS_OK [p_1]\n")
	b.want(": thread_stop([])", "0 OMIS_OK []\n1 OMIS_OK []\n")
	if got := len(p.StoppedThreads()); got != 2 {
		t.Errorf("%d threads are stopped, want 2", got)
	}
}

func TestConditional(t *testing.T) {
	b := start(t)
	p := b.node.Add(812, []string{"x"}, 812)
	b.ask(`: proc_attach3([],812,"")`)
	replies := make(chan omis.Reply, 10)
	r, err := b.tool.Request(context.Background(), "thread_reached_addr([p_1],0x401136) : print([$proc,$thread]) thread_stop([$thread])",
		func(r omis.Reply) { replies <- r }, omis.WaitForFirstReply)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := syntax.PrintReply(r), "0 OMIS_CSR_DEFINED(2) [] c_1\n1 OMIS_OK []\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	p.Reach(812, 0x401136, 0)
	b.want(": csr_enable([c_1])", "0 OMIS_OK []\n1 OMIS_OK []\n")
	p.Reach(812, 0x401136, 0)
	for _, want := range []string{
		"0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK []\n",
		"0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_OK [] 2,[p_1,t_1]\n2 OMIS_OK []\n",
	} {
		if got := syntax.PrintReply(<-replies); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := len(p.StoppedThreads()); got != 1 {
		t.Errorf("%d threads are stopped, want 1", got)
	}
	b.ask(": csr_delete([])")
	if n := p.Watches(); n != 0 {
		t.Errorf("%d watches are left", n)
	}
}
