package probes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"mirador/mir"
	"mirador/mir/conform"
	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/probes"
	"mirador/probes/deliver"
	"mirador/probes/journal"
	"mirador/sir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(checkAnswers)) }

// answers collects the answers of all tests, with their requests. checkAnswers checks them after
// the tests, because the validator, which is in C, cannot be called in a synctest bubble.
var answers struct {
	sync.Mutex
	all []answer
}

type answer struct {
	talk          *conform.Conversation
	request, text string
}

func (h *harness) answered(request, text string) {
	answers.Lock()
	defer answers.Unlock()
	answers.all = append(answers.all, answer{h.talk, request, text})
}

// checkAnswers checks all answers, and ends the process with an error if one is invalid.
func checkAnswers(status int) {
	for _, a := range answers.all {
		if err := a.talk.Check("", []byte(a.request), []byte(a.text)); err != nil {
			fmt.Fprintf(os.Stderr, "FAIL: an invalid answer to %s: %v\n%s\n", a.request, err, a.text)
			status = 1
		}
	}
	os.Exit(status)
}

// The id, entry and exit of the only unit of each process.
const (
	unit  = "f.1a2b"
	entry = 0x401136
	leave = 0x401190
)

// harness connects a registry with the real engine and a fake node.
type harness struct {
	destinations []string // allowed URIs; files are always allowed
	testing.TB
	node          *fake.Node
	placer        *fake.Placer // nil: trap is the only placement
	engine        *engine.Engine
	journal       *journal.Journal
	engineRecords *engineRecords
	spent         func() omis.Spending // the cost of all probes; nil: unknown
	starts        []node.Start         // what the runtime tells of new processes, one after the other
	weaving       string               // of the program of all processes
	linker        node.Start           // what the runtime tells when starts is empty
	libraries     map[int]uint64       // by process, where it has the library with unit; nil: unit is in the program; no entry: closed
	data          string               // the directory of the journal; "": no journal
	registry      *probes.Registry
	talk          *conform.Conversation
	source        string       // of the program, "" if it is not known
	log           bytes.Buffer // the log of the registry
}

func newHarness(t testing.TB, destinations ...string) *harness {
	t.Helper()
	h := &harness{TB: t, node: fake.New("here"), talk: new(conform.Conversation), destinations: destinations}
	h.open(h.node)
	return h
}

// open starts the engine and the registry.
func (h *harness) open(node program.Machine) {
	t := h.TB
	t.Helper()
	e, err := engine.New(node, slog.New(slog.DiscardHandler), pa.New())
	if err != nil {
		t.Fatal(err)
	}
	h.engine = e
	h.registry = probes.New(probes.Config{
		Node: "here", Monitor: monitor{h.node, e, h}, Runtime: programs{h}, Journal: h.openJournal(),
		Destinations: append(deliver.Rules{deliver.AnyFile}, h.destinations...),
		Log:          slog.New(slog.NewTextHandler(&h.log, nil)), Outline: outlineOf,
	})
	t.Cleanup(func() {
		ctx := context.Background()
		for _, c := range []func(context.Context) error{h.registry.Close, e.Close, h.node.Close} {
			if err := c(ctx); err != nil {
				t.Error(err)
			}
		}
	})
}

// monitor makes tools whose Spent calls the harness.
type monitor struct {
	*fake.Node
	*engine.Engine
	h *harness
}

func (m monitor) Tool(name string) (omis.Tool, error) { return tool{m.Engine.Tool(name), m.h}, nil }

// tool is a tool whose Spent calls the harness.
type tool struct {
	*engine.Tool
	h *harness
}

func (t tool) Spent([]omis.Token) (omis.Spending, error) {
	if t.h.spent == nil {
		return omis.Spending{}, errors.New("the cost is not known")
	}
	return t.h.spent(), nil
}

// programs implements probes.Runtime for the processes of the harness.
type programs struct{ h *harness }

func (p programs) Name(pid int) string { return p.h.programName(pid) }

func (p programs) Modules(_ context.Context, pid int, _ string) ([]translate.Module, error) {
	list := p.h.modules()
	if at, open := p.h.libraries[pid]; open {
		list[0].Bias = at
	} else if p.h.libraries != nil {
		return nil, nil
	}
	return list, nil
}

func (p programs) Weavings(string, int) []string { return []string{p.h.weaving} }

func (programs) Goroutines(context.Context, int, int) ([]node.GoroutineInfo, error) { return nil, nil }

func (p programs) Opened(pid int) (list []translate.Library, _ error) {
	if at, open := p.h.libraries[pid]; open {
		list = []translate.Library{{Path: "/lib/plugin.so", Begin: at + 0x400000, End: at + 0x500000}}
	}
	return list, nil
}

func (p programs) Start(int) (node.Start, error) {
	if len(p.h.starts) == 0 {
		return p.h.linker, nil
	}
	s := p.h.starts[0]
	p.h.starts = p.h.starts[1:]
	return s, nil
}

func (programs) Resolver(context.Context, int) (func(uint64, bool) string, error) {
	return func(uint64, bool) string { return "multiply" }, nil
}

func (h *harness) programName(pid int) string {
	id, err := h.node.Identify(pid)
	if err != nil {
		return ""
	}
	info, err := h.node.ProcInfo(id, node.ProcArgv)
	if err != nil || len(info.Argv) == 0 {
		return ""
	}
	return path.Base(info.Argv[0])
}

func (h *harness) modules() []translate.Module {
	p := &sir.Program{Path: "bin/mmul", Weaving: h.weaving}
	p.Regions = []sir.Region{{ID: unit, Name: "multiply", Symbol: "multiply", Entry: entry}}
	m := newModule(p)
	m.Locator.(exits)[unit] = []uint64{leave}
	if h.weaving != "" {
		p.Markers = []sir.Region{{ID: wovenUnit, Name: wovenUnit, Form: sir.Woven, Entry: entry, Code: &sir.Code{}}}
		m.Locator.(exits)[wovenUnit] = []uint64{leave}
	}
	if h.source != "" {
		p.Regions[0].Kind, m.Branch, m.Declared, m.Line = sir.Function, h.branch, h.declared, lineOf
	}
	m.Units = sir.NewIndex(p)
	return []translate.Module{m}
}

func (h *harness) attach(name string, pids ...int) *probes.App {
	h.Helper()
	a, err := h.registry.Attach(h.Context(), name, pids)
	if err != nil {
		h.Fatal(err)
	}
	return a
}

// post sends a request and returns the answer on one line.
func (h *harness) post(a *probes.App, request string) string {
	h.Helper()
	doc, err := mir.Decoder{Limits: mir.RequestLimits()}.DecodeRequest([]byte(request))
	if err != nil {
		h.Fatal(err)
	}
	answer, err := a.Answer(h.Context(), doc, probes.Options{})
	if err != nil {
		h.answered(request, line(h, failure(err)))
		return "errors: " + err.Error()
	}
	if answer == nil {
		return ""
	}
	text := line(h, answer)
	h.answered(request, text)
	return text
}

func line(t testing.TB, doc mir.Document) string {
	t.Helper()
	text, err := mir.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// want sends a request and compares the answer.
func (h *harness) want(a *probes.App, request, answer string) {
	h.Helper()
	if got := h.post(a, request); got != answer {
		h.Errorf("%s\n got %s\nwant %s", request, got, answer)
	}
}

// execute makes a thread execute the unit.
func execute(p *fake.Process, tid int) {
	p.Reach(tid, entry, 0x7ffc1000)
	p.Reach(tid, leave, 0x7ffc1000)
}

const (
	countIt  = `<instrreq activated="true" flush="true"><codeRegion from="f.1a2b"/><metric name="COUNT"/></instrreq>`
	valueIt  = `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`
	removeIt = `<ctrlreq action="REMOVE"><probe id="probe-1"/></ctrlreq>`
)
