package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mirador/omis"
)

// world has processes with threads. The tool is attached to some of the processes.
type world struct {
	*bench
	procs    map[omis.Token][]omis.Token // threads of the attached processes
	attached []omis.Token
	threads  []omis.Token
}

func newWorld(t *rapid.T, b *bench, serial int) *world {
	w := &world{bench: b, procs: make(map[omis.Token][]omis.Token)}
	b.tool = b.engine.Tool(fmt.Sprintf("tool %d", serial))
	for i := range rapid.IntRange(1, 4).Draw(t, "processes") {
		pid := serial*1000 + i*100 + 1
		var tids []int
		for k := range rapid.IntRange(1, 3).Draw(t, "threads") {
			tids = append(tids, pid+k)
		}
		b.node.Add(pid, []string{"a"}, tids...)
		if !rapid.Bool().Draw(t, "attached") {
			continue
		}
		p := b.values(fmt.Sprintf(`: proc_attach3([],%d,"")`, pid), 1)[0]
		w.attached = append(w.attached, p)
		w.procs[p] = b.objects(fmt.Sprintf(": thread_get_info([%s],0)", p), 1)
		w.threads = append(w.threads, w.procs[p]...)
	}
	return w
}

func (b *bench) reply(request string) omis.Reply {
	r, err := b.tool.Request(context.Background(), request, nil, 0)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// values returns the tokens in the results of an action, objects the tokens of its objects.
func (b *bench) values(request string, action int) (list []omis.Token) {
	for _, o := range b.reply(request)[action] {
		for _, v := range o.Values {
			list = append(list, v.Token())
		}
	}
	return list
}

func (b *bench) objects(request string, action int) (list []omis.Token) {
	for _, o := range b.reply(request)[action] {
		list = append(list, o.Objects...)
	}
	return list
}

func sorted(list []omis.Token) []omis.Token {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// TestConversionProperties checks that conversions agree with the hierarchy: a process contains its
// threads, a thread belongs to one process, and the node and the empty list contain all attached
// objects and no others.
func TestConversionProperties(t *testing.T) {
	b := start(t)
	serial := 0
	rapid.Check(t, func(t *rapid.T) {
		serial++
		w := newWorld(t, b, serial)
		defer b.tool.Finalize()
		w.checkEverything(t)
		if len(w.attached) > 0 {
			w.checkMixture(t)
		}
	})
}

func (w *world) checkEverything(t *rapid.T) {
	if got := w.objects(": proc_get_info([],0)", 1); !slices.Equal(sorted(got), sorted(w.attached)) {
		t.Fatalf("[] means the processes %v, want %v", got, w.attached)
	}
	if got := w.objects(": thread_get_info([],0)", 1); !slices.Equal(sorted(got), sorted(w.threads)) {
		t.Fatalf("[] means the threads %v, want %v", got, w.threads)
	}
	if len(w.attached) > 0 {
		if got := w.objects(": thread_get_info([n_1],0)", 1); !slices.Equal(sorted(got), sorted(w.threads)) {
			t.Fatalf("[n_1] means the threads %v, want %v", got, w.threads)
		}
	}
}

// checkMixture converts a list of processes and threads to processes and to threads.
func (w *world) checkMixture(t *rapid.T) {
	mixture := rapid.SliceOfN(rapid.SampledFrom(append(slices.Clone(w.attached), w.threads...)), 1, 5).Draw(t, "mixture")
	var procs, threads []omis.Token
	for _, token := range mixture {
		if ts, ok := w.procs[token]; ok {
			procs = append(procs, token)
			threads = append(threads, ts...)
			continue
		}
		threads = append(threads, token)
		for p, ts := range w.procs {
			if slices.Contains(ts, token) {
				procs = append(procs, p)
			}
		}
	}
	list := fmt.Sprint(mixture)
	list = strings.ReplaceAll(list, " ", ",")
	if got := w.objects(": proc_get_info("+list+",0)", 1); !slices.Equal(sorted(got), sorted(procs)) || len(got) != len(sorted(got)) {
		t.Fatalf("%s means the processes %v, want %v", list, got, procs)
	}
	if got := w.objects(": thread_get_info("+list+",0)", 1); !slices.Equal(sorted(got), sorted(threads)) || len(got) != len(sorted(got)) {
		t.Fatalf("%s means the threads %v, want %v", list, got, threads)
	}
}

// TestTokensAreNeverReused checks that new objects have new tokens after others have ended.
func TestTokensAreNeverReused(t *testing.T) {
	b := start(t)
	seen := make(map[omis.Token]bool)
	fresh := func(tokens ...omis.Token) {
		t.Helper()
		for _, token := range tokens {
			if seen[token] {
				t.Errorf("%s was used twice", token)
			}
			seen[token] = true
		}
	}
	for range 3 {
		p := b.node.Add(1, []string{"a"}, 1, 2)
		fresh(b.values(`: proc_attach3([],1,"")`, 1)...)
		fresh(b.objects(": thread_get_info([],0)", 1)...)
		p.EndThread(2)
		if got := b.objects(": thread_get_info([],0)", 1); len(got) != 1 {
			t.Errorf("the threads are %v, want one", got)
		}
		p.Spawn(1, 2)
		fresh(b.objects(": thread_get_info([],0)", 1)[1:]...)
		fresh(b.values(": user_event_create()", 1)...)
		b.ask(": user_event_destroy([e_1])")
		b.ask("proc_has_terminated([]) : print([])")
		fresh(b.objects(": csr_enable([])", 1)...)
		p.End()
		eventually(t, func() bool { return len(b.objects(": proc_get_info([],0)", 1)) == 0 })
		b.ask(": csr_delete([])")
	}
}
