package probes_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"mirador/mir"
	"mirador/mir/conform"
	"mirador/probes"
)

var update = flag.Bool("update", false, "write the actual requests and answers to examples/cases; the monitor's replies stay unchanged")

// TestCases executes the cases in examples/cases: a sequence of MIR requests, the OMIS requests
// that they become, the monitor's replies, and the answers. The README there explains how to
// write a case.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("../examples/cases/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { playCase(t, file) })
	}
}

func playCase(t *testing.T, file string) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := &txtar.Archive{Comment: a.Comment}
	var stage *player
	for _, f := range a.Files {
		got.Files = append(got.Files, f)
		last := &got.Files[len(got.Files)-1]
		step, part, _ := strings.Cut(f.Name, "/")
		switch {
		case f.Name == "targets":
			stage = newPlayer(t, string(f.Data))
		case stage == nil:
			t.Fatalf("%s: the section targets must come first", f.Name)
		case strings.HasPrefix(part, "request"):
			stage.post(part, f.Data, section(a, step+"/omis"))
		case part == "omis":
			last.Data = []byte(stage.tool.played())
		case part == "reply.xml":
			last.Data = stage.reply
		default:
			t.Fatalf("a case cannot have a section %s", f.Name)
		}
		if !*update && !bytes.Equal(last.Data, f.Data) {
			t.Errorf("%s\n--- got\n%s--- want\n%s", f.Name, last.Data, f.Data)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// player has an application of a scripted monitor.
type player struct {
	t     *testing.T
	tool  *script
	app   *probes.App
	reply []byte
	talk  conform.Conversation
}

func newPlayer(t *testing.T, targets string) *player {
	t.Helper()
	application, err := parseTargets(targets)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{t: t, tool: &script{app: application}}
	registry := probes.New(application.config(p.tool))
	p.app, err = registry.Attach(t.Context(), "", application.pids())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close(context.Background()) }) // fails: the script has no replies to Close
	return p
}

// post sends a request. It only explains requests in sections whose names contain "explain".
func (p *player) post(name string, request []byte, exchanges string) {
	p.t.Helper()
	doc, err := mir.Decoder{Limits: mir.RequestLimits()}.DecodeRequest(request)
	if err != nil {
		p.t.Fatal(err)
	}
	_, snapshot := doc.(*mir.SnapshotRequest)
	p.tool.play(p.t, exchanges, snapshot)
	answer, err := p.app.Answer(context.Background(), doc, probes.Options{Explain: strings.Contains(name, "explain")})
	if err != nil {
		answer = failure(err)
	}
	p.reply = encode(p.t, answer)
	prefer := ""
	if strings.Contains(name, "explain") {
		prefer = "explain"
	}
	p.talk.Answer(p.t, prefer, request, p.reply)
	for _, request := range p.tool.missing {
		p.t.Errorf("%s: the case has no reply to %s", name, request)
	}
}

func failure(err error) *mir.Errors {
	doc := &mir.Errors{}
	for _, e := range probes.AsErrors(err) {
		doc.Messages = append(doc.Messages, e.Error())
	}
	return doc
}

// encode returns a document with indentation, nil if there is no document.
func encode(t *testing.T, doc mir.Document) []byte {
	t.Helper()
	if doc == nil {
		return nil
	}
	var b bytes.Buffer
	if err := (mir.Encoder{Indent: "  "}).Encode(&b, doc); err != nil {
		t.Fatal(err)
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
}
