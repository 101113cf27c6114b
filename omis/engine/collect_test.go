package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/program"
)

// TestReadAtOnce checks that reading many counters and timers together returns the same as reading
// each of them alone, for objects with rows in one store, in several, in none, or also in the monitor.
func TestReadAtOnce(t *testing.T) {
	b, placer, p := startPlacing(t)
	q := placer.Node.Add(2, nil, 21)
	b.ask(`: proc_attach3([],2,"")`)
	b.ask(":" + strings.Repeat(" pa_counter_create() pa_timer_create()", 6))
	for i, processes := range []string{"p_1", "p_1", "p_2", "", "p_1,p_2", "p_1"} {
		if processes != "" {
			at := 0x10 * (i + 1)
			b.ask(fmt.Sprintf("thread_reached_addr([%s],%#x) : pa_counter_add([pa_c_%d],1) pa_timer_start([pa_t_%[3]d])", processes, at, i+1))
			b.ask(fmt.Sprintf("thread_reached_addr([%s],%#x) : pa_timer_stop([pa_t_%d])", processes, at+8, i+1))
		}
	}
	b.ask(": csr_enable([]) pa_counter_add([pa_c_6],5)")
	for at := uint64(0x10); at <= 0x60; at += 0x10 {
		p.Reach(11, at, 100)
		p.Reach(11, at+8, 100)
		q.Reach(21, at, 100)
	}
	p.Reach(12, 0x20, 100)
	compare := func(tokens string) {
		t.Helper()
		for service, class := range map[string]string{"pa_counter_read([": "pa_c_", "pa_timer_read([": "pa_t_"} {
			together := make(map[omis.Token]string)
			for _, r := range b.reply(": " + service + tokensOf(class, tokens) + "])")[1] {
				for _, token := range r.Objects {
					r.Objects = nil
					together[token] = fmt.Sprint(r)
				}
			}
			for _, n := range strings.Split(tokens, ",") {
				r := b.reply(": " + service + class + n + "])")[1][0]
				r.Objects = nil
				if want := fmt.Sprint(r); together[omis.Token(class+n)] != want {
					t.Errorf("%s%s])\ntogether %s\nalone    %s", service, class+n, together[omis.Token(class+n)], want)
				}
			}
		}
	}
	compare("1,2,3,4,5,6")
	compare("6,4,5,1")
	if !slices.Contains(placer.Calls(), "read 6") {
		t.Errorf("stores were not read together: %s", placer.Calls())
	}
	b.want(": pa_counter_read([])", "0 OMIS_OK []\n"+
		"1 OMIS_OK [pa_c_1] 1,[p_1,t_1,1]\n1 OMIS_OK [pa_c_2] 2,[p_1,t_1,1,p_1,t_2,1]\n1 OMIS_OK [pa_c_3] 1,[p_2,t_3,1]\n"+
		"1 OMIS_OK [pa_c_4] 0,[]\n1 OMIS_OK [pa_c_5] 2,[p_1,t_1,1,p_2,t_3,1]\n1 OMIS_OK [pa_c_6] 2,[u_0,u_0,5,p_1,t_1,1]\n")
	// If a store cannot be read, only its objects have the error.
	placer.Unreadable = func(id omis.ProcID, _ program.StoreKind) error {
		if id.PID == 2 {
			return omis.Errorf(omis.OSError, "cannot be read")
		}
		return nil
	}
	compare("1,2,3,4,5,6")
	placer.Unreadable = nil
}

// tokensOf returns the tokens of a class with the given numbers.
func tokensOf(class, numbers string) string {
	return class + strings.ReplaceAll(numbers, ",", ","+class)
}
