package flow

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// graph makes a graph of the successors of each block. Block i begins at 16*i, and its last
// instruction is at 16*i+8.
func graph(t testing.TB, succ ...[]int) *Graph {
	t.Helper()
	g := &Graph{}
	for i, s := range succ {
		at := uint64(16 * i)
		g.Blocks = append(g.Blocks, Block{Start: at, Last: at + 8, End: at + 16, Succ: slices.Clone(s)})
	}
	if err := g.Connect(); err != nil {
		t.Fatal(err)
	}
	return g
}

func to(b ...int) []int { return b }

func TestLoops(t *testing.T) {
	for _, c := range []struct {
		name string
		g    *Graph
		want string // heads, blocks, parent of each loop
	}{
		{"none", graph(t, to(1, 2), to(3), to(3), nil), "[]"},
		{"one block", graph(t, to(1), to(1, 2), nil), "[{[1] [1] -1 0}]"},
		{"tested at the top", graph(t, to(1), to(2, 3), to(1), nil), "[{[1] [1 2] -1 0}]"},
		{"nested", graph(t, to(1), to(2, 5), to(3), to(3, 4), to(1), nil), "[{[1] [1 2 3 4] -1 0} {[3] [3] 0 1}]"},
		{"two in one", graph(t, to(1), to(2, 4), to(2, 3), to(3, 1), nil), "[{[1] [1 2 3] -1 0} {[2] [2] 0 1} {[3] [3] 0 1}]"},
		{"irreducible", graph(t, to(1, 2), to(2), to(1, 3), nil), "[{[1 2] [1 2] -1 0}]"},
		{"the entry is a head", graph(t, to(0, 1), nil), "[{[0] [0] -1 0}]"},
		{"never left", graph(t, to(1), to(2), to(1)), "[{[1] [1 2] -1 0}]"},
	} {
		loops, err := c.g.Loops()
		if got := fmt.Sprint(loops); err != nil || got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.name, got, err, c.want)
		}
	}
}

func TestEdgesOfLoops(t *testing.T) {
	g := graph(t, to(1), to(2, 4), to(3, 4), to(1), nil)
	loops, err := g.Loops()
	if err != nil || len(loops) != 1 {
		t.Fatal(loops, err)
	}
	l := loops[0]
	if got := fmt.Sprint(l.Enter(g), l.Back(g), l.Leave(g)); got != "[{0 1}] [{3 1}] [{1 4} {2 4}]" {
		t.Error(got)
	}
}

func TestPlaces(t *testing.T) {
	skipped := graph(t, to(1, 4), to(2), to(2, 3), to(4), nil) // a loop of one block behind a test
	for _, c := range []struct {
		name  string
		g     *Graph
		edges []Edge
		want  string
	}{
		{"the target has no other predecessor", skipped, []Edge{{0, 1}}, "[0x10]"},
		{"the source has no other successor", skipped, []Edge{{1, 2}}, "[0x18]"},
		{"all edges into a block", skipped, []Edge{{1, 2}, {2, 2}}, "[0x20]"},
		{"all edges out of a block", skipped, []Edge{{2, 2}, {2, 3}}, "[0x28]"},
		{"before the test that skips a loop", skipped, []Edge{{1, 2}, {0, 4}}, "[0x8]"},
		{"the function's entry", skipped, []Edge{{Outside, 0}}, "[0x0]"},
		{"none", skipped, nil, "[]"},
	} {
		at, err := c.g.Places(c.edges)
		if got := fmt.Sprintf("%#x", at); err != nil || got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.name, got, err, c.want)
		}
	}
	var critical *CriticalError
	if at, err := skipped.Places([]Edge{{0, 4}}); !errors.As(err, &critical) || critical.Branch != 8 || critical.Target != 0x40 {
		t.Errorf("an edge that a branch decides: %#x, %v", at, err)
	}
	if at, err := skipped.PlacesIf([]Edge{{0, 4}}); err != nil || !slices.Equal(at, []Place{{8, true, 0x40}}) {
		t.Errorf("an edge that a branch decides, by its outcome: %v, %v", at, err)
	}
	if at, err := graph(t, to(0, 1), nil).PlacesIf([]Edge{{Outside, 0}}); !errors.As(err, &critical) {
		t.Errorf("the entry of a function that begins with a loop: %v, %v", at, err)
	}
}

// TestRandomWalks compares with walks through random graphs: the addresses are passed once each
// time an edge is taken, loops are entered at their heads, and dominators are passed before.
func TestRandomWalks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	placed, outcomes := 0, 0
	for range 3000 {
		g := randomGraph(t, r)
		dom, err := g.Dominators()
		if err != nil {
			t.Fatal(err)
		}
		loops, err := g.Loops()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range loops {
			for _, edges := range [][]Edge{l.Enter(g), l.Back(g), l.Leave(g), append(l.Enter(g), l.Back(g)...)} {
				if at, err := g.Places(edges); err == nil {
					placed++
					compareWalk(t, g, r, dom, edges, anyway(at))
				}
				if at, err := g.PlacesIf(edges); err == nil {
					outcomes++
					compareWalk(t, g, r, dom, edges, at)
				}
			}
		}
	}
	if placed < 3000 || outcomes < placed+1000 {
		t.Errorf("%d sets of edges have addresses, %d with outcomes of branches", placed, outcomes)
	}
}

// anyway returns places that always count.
func anyway(addrs []uint64) (list []Place) {
	for _, a := range addrs {
		list = append(list, Place{Addr: a})
	}
	return list
}

// randomGraph makes a graph whose blocks can all be reached.
func randomGraph(t testing.TB, r *rand.Rand) *Graph {
	n := 2 + r.IntN(9)
	succ := make([][]int, n)
	for i := 1; i < n; i++ {
		from := r.IntN(i)
		succ[from] = append(succ[from], i)
	}
	for range r.IntN(n + 3) {
		from := r.IntN(n)
		succ[from] = append(succ[from], r.IntN(n))
	}
	return graph(t, succ...)
}

// compareWalk walks at random. The number of passed addresses may differ from the number of taken
// edges only on the way from an address to the edge that it counts early.
func compareWalk(t *testing.T, g *Graph, r *rand.Rand, dom []int, edges []Edge, at []Place) {
	t.Helper()
	taken, passed, b, ended := 0, 0, 0, false
	seen := map[int]bool{}
	follow := func(e Edge) {
		if slices.Contains(edges, e) {
			taken++
		}
	}
	follow(Edge{Outside, 0})
	for range 40 {
		if seen[b] = true; dom[b] >= 0 && !seen[dom[b]] {
			t.Fatalf("%+v: block %d is reached before its dominator %d", g, b, dom[b])
		}
		for _, a := range []uint64{g.Blocks[b].Start, g.Blocks[b].Last} {
			if slices.Contains(at, Place{Addr: a}) {
				passed++
			}
		}
		out := g.outOf(b)
		if ended = len(out) == 0; ended {
			break
		}
		e := out[r.IntN(len(out))]
		follow(e)
		if slices.Contains(at, Place{g.Blocks[b].Last, true, g.Blocks[e.To].Start}) {
			passed++
		}
		b = e.To
	}
	if ended && passed != taken || passed-taken > 1 || taken > passed+1 {
		t.Fatalf("%+v: %d edges of %v are taken, addresses %v passed %d times; the walk ends in %d", g, taken, edges, at, passed, b)
	}
}

func FuzzGraph(f *testing.F) {
	f.Add([]byte{3, 0, 1, 1, 2, 2, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		n := int(data[0])%64 + 1
		succ := make([][]int, n)
		for i := 1; i+1 < len(data); i += 2 {
			from := int(data[i]) % n
			succ[from] = append(succ[from], int(data[i+1])%n)
		}
		g := graph(t, succ...)
		if _, err := g.Dominators(); err != nil {
			t.Error(err)
		}
		loops, err := g.Loops()
		if err != nil {
			t.Error(err)
		}
		for _, l := range loops {
			_, _ = g.Places(l.Enter(g))
			_, _ = g.Places(l.Leave(g))
		}
	})
}
