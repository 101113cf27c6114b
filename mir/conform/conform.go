// Package conform checks the answers of a gateway in tests: against the gateway's schemas and
// its DTD, against the DTD of MIR's report unless the request asks for an extension, and
// against rules of MIR that a grammar cannot express.
//
// Tests of any package may import it; other code must not. It starts no goroutine.
package conform

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"

	"mirador/mir"
	"mirador/mir/xsd"
	"mirador/schemas"
)

//go:embed testdata/report.dtd
var report []byte

// Conversation is a sequence of requests to one gateway. The zero value is ready to use. It
// may be used by several goroutines.
type Conversation struct {
	sampled atomic.Bool // a request asked for values with extensions
}

// Answer fails the test if a MIR document is not a valid answer to a request. prefer is the
// Prefer header of the request.
func (c *Conversation) Answer(t testing.TB, prefer string, request, answer []byte) {
	t.Helper()
	if err := c.Check(prefer, request, answer); err != nil {
		t.Errorf("an invalid answer to %s: %v\n%s", request, err, answer)
	}
}

// Check returns what is wrong with an answer. An empty answer is valid.
func (c *Conversation) Check(prefer string, request, answer []byte) error {
	asks := bytes.Contains(request, []byte(mir.GatewayNamespace))
	if asks {
		c.sampled.Store(true)
	}
	if len(bytes.TrimSpace(answer)) == 0 {
		return nil
	}
	// Values have the extensions that an earlier request asked for, such as percentiles.
	values := c.sampled.Load() && bytes.Contains(answer, []byte("<measurement"))
	return Check(asks || prefer != "" || values, answer)
}

// Check returns what is wrong with an answer. extended allows the extensions of the gateway,
// which the DTD of the report does not declare.
func Check(extended bool, answer []byte) error {
	g, err := grammars()
	if err != nil {
		return err
	}
	tree, err := mir.Scan(answer, mir.ReplyLimits())
	if err != nil {
		return err
	}
	switch root := tree.Root(); {
	case root.Space() == "" && root.Name() == "sir":
		return errors.Join(named("sir.xsd", g.sir.Validate(tree)), named("sir.dtd", g.structure.validate(answer)))
	case root.Space() == "" && root.Name() == "reply":
		return named("omis.xsd", g.omis.Validate(tree))
	case root.Space() == mir.GatewayNamespace:
		if !extended {
			return errors.New("an extension that was not asked for")
		}
		return named("gateway.xsd", g.gateway.Validate(tree))
	}
	err = errors.Join(named("mir.xsd", g.mir.Validate(tree)), named("mir.dtd", g.ours.validate(answer)), rules(answer))
	if !extended {
		err = errors.Join(err, named("the DTD of the report", g.report.validate(answer)))
	}
	return err
}

func named(grammar string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("by %s: %w", grammar, err)
}

// positioned matches the beginning of every error.
var positioned = regexp.MustCompile(`^line \d+, column \d+: .`)

// rules checks what grammars cannot express: an element of a measurement with children has at
// most one id and no value (MIR 6, rule 3), and an error begins with its position in the
// request.
func rules(answer []byte) error {
	document, err := mir.Decode(answer, mir.ReplyLimits())
	if err != nil {
		return err
	}
	switch d := document.(type) {
	case *mir.Measurement:
		return levels(d)
	case *mir.Errors:
		for _, message := range d.Messages {
			if !positioned.MatchString(message) {
				return fmt.Errorf("an error without a position: %s", message)
			}
		}
	}
	return nil
}

func levels(m *mir.Measurement) error {
	if len(m.Children) == 0 {
		return nil
	}
	ids := 0
	for _, id := range []string{m.ProbeID, m.SiteID, m.NodeID, m.CommunicatorID, m.ProcessID, m.ThreadID} {
		if id != "" {
			ids++
		}
	}
	if ids > 1 || m.Value != "" {
		return fmt.Errorf("a merged element with %d ids and the value %q", ids, m.Value)
	}
	for i := range m.Children {
		if err := levels(&m.Children[i]); err != nil {
			return err
		}
	}
	return nil
}

// grammar has the schemas and DTDs that answers are checked against.
type grammar struct {
	mir, sir, omis, gateway *xsd.Schema
	ours, structure, report *dtd
}

// grammars are parsed once per process.
var grammars = sync.OnceValues(func() (g grammar, err error) {
	for _, s := range []struct {
		into   **xsd.Schema
		source []byte
	}{{&g.mir, schemas.MIR()}, {&g.sir, schemas.SIR()}, {&g.omis, schemas.OMIS()}, {&g.gateway, schemas.Gateway()}} {
		if *s.into, err = xsd.New(s.source); err != nil {
			return g, err
		}
	}
	for name, into := range map[string]**dtd{"mir.dtd": &g.ours, "sir.dtd": &g.structure} {
		text, err := fs.ReadFile(schemas.Files(), name)
		if err != nil {
			return g, err
		}
		if *into, err = parseDTD(text); err != nil {
			return g, named(name, err)
		}
	}
	g.report, err = parseDTD(report)
	return g, named("the DTD of the report", err)
})
