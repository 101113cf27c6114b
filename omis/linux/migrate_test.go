//go:build linux && amd64

package linux

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/program"
	"mirador/omis/syntax"
)

// session is a tool of an engine with nodes of this machine.
type session struct {
	t    testing.TB
	tool *engine.Tool

	mu   sync.Mutex
	said []string // replies of conditional requests
}

func startSession(t testing.TB, nodes ...program.Machine) *session {
	t.Helper()
	e, err := engine.NewOver(nodes, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &session{t: t, tool: e.Tool("test")}
}

func (h *session) ask(request string) string {
	h.t.Helper()
	r, err := h.tool.Request(context.Background(), request, nil, 0)
	if err != nil {
		h.t.Fatalf("%s: %v", request, err)
	}
	return syntax.PrintReply(r)
}

func (h *session) want(request, reply string) {
	h.t.Helper()
	if got := h.ask(request); got != reply {
		h.t.Errorf("%s\n got %s\nwant %s", request, got, reply)
	}
}

// listen defines a conditional request and collects its replies.
func (h *session) listen(request string, flags omis.Flags) {
	h.t.Helper()
	r, err := h.tool.Request(context.Background(), request, func(r omis.Reply) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.said = append(h.said, syntax.PrintReply(r))
	}, omis.WaitForFirstReply|flags)
	if err != nil || r.Err() != nil {
		h.t.Fatalf("%s: %v %v", request, err, r.Err())
	}
}

// count returns the number of replies that contain a text.
func (h *session) count(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, s := range h.said {
		if strings.Contains(s, text) {
			n++
		}
	}
	return n
}

// order returns the index of the first reply that contains a text, -1 if there is none.
func (h *session) order(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.IndexFunc(h.said, func(s string) bool { return strings.Contains(s, text) })
}

// TestRestoreByEngine checks that a restored process is attached with a new token, and that requests for all
// processes are enabled for it before it runs.
func TestRestoreByEngine(t *testing.T) {
	n := openSaving(t, "here", t.TempDir())
	h := startSession(t, n)
	c := startChain(t, 2)
	if cannotSaveByEngine(t, h, n, c) {
		return
	}
	h.want(fmt.Sprintf(`: node_attach2("here") proc_attach3([],%d,"")`, c.ID.PID), "0 OMIS_OK []\n1 OMIS_OK [] n_1\n2 OMIS_OK [n_1] p_1\n")
	h.listen(fmt.Sprintf("thread_reached_addr([],%d) : print([\"hit\",$proc])", c.Addr), omis.DontReturnEnDis)
	h.want(": csr_enable([])", "0 OMIS_OK []\n1 OMIS_OK []\n")
	eventually(t, "hits", func() bool { return h.count(`"hit",p_1`) > 5 })
	h.want(`: proc_checkpoint([p_1],"mine")`, "0 OMIS_OK []\n1 OMIS_OK []\n")
	seen := h.count(`"hit",p_1`)
	eventually(t, "hits after the checkpoint", func() bool { return h.count(`"hit",p_1`) > seen+5 })
	c.kill(t)
	eventually(t, "the end is noticed", func() bool { return !strings.Contains(h.ask(": proc_get_info([],0)"), "p_1") })
	h.want(`: proc_restore("mine") proc_get_info([],0x200)`, fmt.Sprintf("0 OMIS_OK []\n1 OMIS_OK [] [p_2],1\n2 OMIS_OK [p_2] %d\n", c.ID.PID))
	defer unix.Kill(c.ID.PID, unix.SIGKILL)
	eventually(t, "hits of the restored", func() bool { return h.count(`"hit",p_2`) > 5 })
	c.grows(t)
}

// TestMigrateByEngine migrates a process between two nodes on this machine: the process keeps its tokens and its
// requests, and the chain continues.
func TestMigrateByEngine(t *testing.T) {
	folder := t.TempDir()
	n := openSaving(t, "here", folder)
	h := startSession(t, n, openSaving(t, "there", folder))
	c := startShellChain(t, 2)
	if cannotSaveByEngine(t, h, n, c, `: node_attach2("there") proc_migrate([p_1],n_2)`) {
		return
	}
	h.want(fmt.Sprintf(`: node_attach2("here") node_attach2("there") proc_attach3([n_1],%d,"")`, c.ID.PID),
		"0 OMIS_OK []\n1 OMIS_OK [] n_1\n2 OMIS_OK [] n_2\n3 OMIS_OK [n_1] p_1\n")
	threads := h.ask(": thread_get_info([p_1],0)")
	h.listen("proc_will_be_migrated([]) : print([\"will\",$proc,$node,$dest_node])", omis.DontReturnEnDis)
	h.listen("proc_has_been_migrated([]) : print([\"has\",$proc,$node])", omis.DontReturnEnDis)
	h.listen("proc_has_terminated([]) : print([\"terminated\"])", omis.DontReturnEnDis)
	h.listen(fmt.Sprintf("thread_reached_addr([p_1],%d) : print([\"hit\",$node])", c.Addr), omis.DontReturnEnDis)
	h.want(": csr_enable([])", "0 OMIS_OK []\n1 OMIS_OK []\n")
	eventually(t, "hits here", func() bool { return h.count(`"hit",n_1`) > 5 })
	before := c.length(t)

	h.want(": proc_migrate([p_1],n_2) proc_get_info([p_1],0x300)", fmt.Sprintf("0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK [p_1] n_2,%d\n", c.ID.PID))
	eventually(t, "hits there", func() bool { return h.count(`"hit",n_2`) > 5 })
	if after := c.length(t); after < before {
		t.Errorf("the chain has %d steps, before the migration %d", after, before)
	}
	if now := h.ask(": thread_get_info([p_1],0)"); now != threads {
		t.Errorf("the threads are\n%s, were\n%s", now, threads)
	}
	will, has := h.order(`"will",p_1,n_1,n_2`), h.order(`"has",p_1,n_2`)
	if will < 0 || has < will || h.count(`"will"`)+h.count(`"has"`) != 2 || h.count("terminated") != 0 {
		t.Errorf("events: will %d, has %d, %d ends", will, has, h.count("terminated"))
	}
	h.want(": thread_stop([p_1]) proc_migrate([p_1],n_1)", "0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK []\n")
	if at, now := c.length(t), c.length(t); at != now {
		t.Error("a stopped process runs after its migration")
	}
	h.want(": thread_continue([p_1])", "0 OMIS_OK []\n1 OMIS_OK []\n")
	c.grows(t)
	if got := c.word(t, c.continued); got != 0 {
		t.Errorf("the program saw %d SIGCONTs", got)
	}
}

// TestCheckpointAsAction saves a process by an action at an address, and two processes together.
func TestCheckpointAsAction(t *testing.T) {
	n := openSaving(t, "here", t.TempDir())
	h := startSession(t, n)
	c, d := startChain(t, 2), startShellChain(t, 1)
	if cannotSaveByEngine(t, h, n, c) {
		return
	}
	h.want(fmt.Sprintf(`: node_attach2("here") proc_attach3([],%d,"") proc_attach3([],%d,"")`, c.ID.PID, d.ID.PID),
		"0 OMIS_OK []\n1 OMIS_OK [] n_1\n2 OMIS_OK [n_1] p_1\n3 OMIS_OK [n_1] p_2\n")
	h.listen(fmt.Sprintf(`thread_reached_addr([p_1],%d) : proc_checkpoint([$proc],"there") csr_disable([$csr])`, c.Addr), omis.DontReturnEnDis)
	h.want(": csr_enable([])", "0 OMIS_OK []\n1 OMIS_OK []\n")
	eventually(t, "the checkpoint", func() bool { return h.order("1 OMIS_OK []\n2 OMIS_OK []") >= 0 })
	c.grows(t)
	h.want(`: proc_checkpoint([p_1,p_2],"both")`, "0 OMIS_OK []\n1 OMIS_OK []\n")
	c.grows(t)
	d.grows(t)
	c.kill(t)
	eventually(t, "the end is noticed", func() bool { return !strings.Contains(h.ask(": proc_get_info([],0)"), "p_1") })
	h.want(`: proc_restore("there")`, "0 OMIS_OK []\n1 OMIS_OK [] [p_3],1\n")
	defer unix.Kill(c.ID.PID, unix.SIGKILL)
	c.grows(t)
	if got := h.ask(`: proc_restore("both")`); !strings.Contains(got, "it still runs") {
		t.Error(got)
	}
}
