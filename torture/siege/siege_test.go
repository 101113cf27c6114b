//go:build linux && amd64

package main

import (
	"encoding/xml"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSiege runs "make siege" with small numbers. It logs the seed, which is new in each run.
func TestSiege(t *testing.T) {
	mirador := filepath.Join(t.TempDir(), "mirador")
	if out, err := exec.Command("go", "build", "-o", mirador, "mirador").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var progress strings.Builder
	s := siege{
		mirador: mirador, probes: 300, requests: 1000, documents: 1500, notation: 1500, parallel: 4,
		seed: uint64(time.Now().UnixNano() % 1e6), progress: &progress,
	}
	if err := s.run(t.Context()); err != nil {
		t.Error(err)
	}
	t.Log(progress.String())
}

// TestMutatorIsReproducible checks that the texts depend only on the seed, and that most of them
// differ from their originals.
func TestMutatorIsReproducible(t *testing.T) {
	g, err := readGrammar(documentWords)
	if err != nil {
		t.Fatal(err)
	}
	fresh := func() *mutator { return &mutator{rand.New(rand.NewPCG(1, 2)), documents, g, documentWords} }
	a, b := fresh(), fresh()
	const texts = 10_000
	same := 0
	for range texts {
		x, y := a.next(), b.next()
		if x != y {
			t.Fatalf("%q and %q", x, y)
		}
		for _, seed := range documents {
			if x == seed {
				same++
			}
		}
	}
	if same < texts/unchanged/2 || same > texts/4 {
		t.Errorf("%d of %d texts were not changed", same, texts)
	}
}

// TestGrammar checks that generated documents are well-formed, and differ.
func TestGrammar(t *testing.T) {
	g, err := readGrammar(documentWords)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	seen, elements := map[string]bool{}, map[string]bool{}
	const texts = 5000
	for range texts {
		text := g.document(r)
		seen[text] = true
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			if e, ok := token.(xml.StartElement); ok {
				elements[e.Name.Local] = true
			}
		}
	}
	for _, name := range []string{"resource", "codeRegion", "event", "aggregate", "communicator", "thread", "action", "any"} {
		if !elements[name] {
			t.Errorf("no document has the element %s", name)
		}
	}
	if len(seen) < texts/2 {
		t.Errorf("%d documents have only %d texts", texts, len(seen))
	}
}
