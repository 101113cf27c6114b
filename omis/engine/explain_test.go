package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/node"
	"mirador/omis/program"
)

// TestExplainedAsExecuted checks that requests are explained with the placements and the reasons that they get
// when they are enabled, although their objects do not exist yet and other objects have their tokens.
func TestExplainedAsExecuted(t *testing.T) {
	entry, exit, call := "thread_reached_addr([],0x10) : ", "thread_reached_addr([],0x20) : ", `thread_has_started_sys_call([],"") : `
	refuses := func(addr uint64) func(places []*fake.Placer) {
		return func(places []*fake.Placer) {
			for _, p := range places {
				p.Refuse = func(w node.Watch) error {
					if w.Addr == addr {
						return &program.Refusal{Why: "no room"}
					}
					return nil
				}
			}
		}
	}
	over := []string{": pa_counter_create()", `: pa_timer_over_counter([pa_c_1],1,"sums")`}
	for name, c := range map[string]struct {
		places   func([]*fake.Placer)
		create   []string
		requests []string
		want     string // the placement of the first request
	}{
		"timer over a counter": {
			func(p []*fake.Placer) { p[0].Blind = true }, over,
			[]string{entry + "pa_timer_start([pa_t_1])", exit + "pa_timer_stop([pa_t_1])", call + "pa_counter_add([pa_c_1],1)"}, "seeing",
		},
		"group of threads": {
			nil, []string{": pa_counter_create()", `: pa_timer_over_counter2([pa_c_1],1,"sums",[])`},
			[]string{entry + "pa_timer_start([pa_t_1])", exit + "pa_timer_stop([pa_t_1])", call + "pa_counter_add([pa_c_1],1)"}, "trap",
		},
		"level": {
			nil, []string{": pa_counter_create() pa_timer_create()"},
			[]string{entry + `pa_timer_take_level([pa_t_1],"heap")`, call + "pa_counter_add([pa_c_1],1)"}, "trap",
		},
		"end refused":    {refuses(0x20), []string{": pa_timer_create()"}, []string{entry + "pa_timer_start([pa_t_1])", exit + "pa_timer_stop([pa_t_1])"}, "trap"},
		"source refused": {refuses(0), over, []string{entry + "pa_timer_take([pa_t_1])", call + "pa_counter_add([pa_c_1],1)"}, "trap"},
	} {
		t.Run(name, func(t *testing.T) {
			b, places, _ := startPlacers(t, "blind", "seeing")
			if c.places != nil {
				c.places(places)
			}
			b.must(": pa_counter_create() pa_timer_create() pa_timer_create()", "thread_reached_addr([],0x30) : pa_timer_start([pa_t_1])", ": csr_enable([])")
			explained, err := b.tool.Explain(c.create, c.requests...)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.ask(": pa_counter_read([]) pa_timer_read([])"); strings.Contains(got, "pa_c_2") || strings.Contains(got, "pa_t_3") {
				t.Errorf("objects are left: %s", got)
			}
			// Another tool has the same objects, under other tokens.
			enabled := b.enableRenamed(c.create, c.requests)
			for i, x := range explained {
				real, err := b.tool.State(enabled[i])
				if err != nil {
					t.Fatal(err)
				}
				for j := range explained {
					x.Placement.Why = strings.ReplaceAll(x.Placement.Why, string(explained[j].Token), string(enabled[j]))
				}
				if got, want := fmt.Sprint(x.Placement), fmt.Sprint(real.Placement); got != want {
					t.Errorf("request %d is explained as\n%s\nit runs in\n%s", i+1, got, want)
				}
			}
			if explained[0].Placement.Name != c.want {
				t.Errorf("placement %s, want %s", explained[0].Placement, c.want)
			}
		})
	}
}

// enableRenamed sends requests with the tokens that the monitor gives to the objects they create, and returns the
// tokens of the conditional ones.
func (b *bench) enableRenamed(create, requests []string) (enabled []omis.Token) {
	b.Helper()
	var renames []string
	made := make(map[omis.Class]int)
	for _, text := range create {
		for _, result := range b.reply(strings.NewReplacer(renames...).Replace(text))[1:] {
			token := result[0].Values[0].Token()
			made[token.Class()]++
			renames = append(renames, fmt.Sprintf("%s_%d", token.Class(), made[token.Class()]), string(token))
		}
	}
	for _, text := range requests {
		enabled = append(enabled, b.reply(strings.NewReplacer(renames...).Replace(text))[0][0].Values[0].Token())
	}
	names := make([]string, len(enabled))
	for i := range enabled {
		names[i] = string(enabled[i])
	}
	b.must(": csr_enable([" + strings.Join(names, ",") + "])")
	return enabled
}

// TestExplainedWithWhatItMoves checks that the explanation of a request for which threads are held names the programs
// that it will move to trap.
func TestExplainedWithWhatItMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, _, _ := startRivals(t)
		b.ask(": pa_counter_create()")
		b.ask("thread_reached_addr([],0x10) : pa_counter_add([pa_c_1],1)")
		b.ask(": csr_enable([])")
		for addr, moves := range map[int]bool{0x10: true, 0x50: false} {
			x, err := b.tool.Explain(nil, fmt.Sprintf("thread_reached_addr([],%#x) : print([])", addr))
			if err != nil || strings.Contains(x[0].Placement.Why, "it keeps c_1 from running where it is cheaper") != moves {
				t.Errorf("at %#x: %v, %v", addr, x, err)
			}
		}
		b.runs("c_1", "near", "")
	})
}
