//go:build linux && amd64

package main

import (
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
	fresh := func() *mutator { return &mutator{rand.New(rand.NewPCG(1, 2)), documents, documentWords} }
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
