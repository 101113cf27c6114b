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

// TestSiege is make siege with small numbers. The seed is a new one each time, and is told.
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

// TestMutatorIsReproducible: the texts depend on the seed alone, and most differ from what they
// were made from.
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
		t.Errorf("%d of %d texts are what they were", same, texts)
	}
}
