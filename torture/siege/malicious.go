//go:build linux && amd64

package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
)

var listedProbe = regexp.MustCompile(`"id": ?"([^"]+)"`)

// requests are OMIS requests about processes p_1 and p_2.
var requests = []string{
	`: proc_get_info([],0x3ff)`, `: proc_get_info([p_1,p_2],1)`, `: thread_get_info([p_1],0x3f)`, `: node_get_info([],0xfff)`,
	`: thread_get_backtrace([],16)`, `: thread_read_int_regs([t_1],0,24)`, `: thread_read_fp_regs([t_1],0,8)`,
	`: proc_read_memory([p_1],0x401000,4,8,16)`, `: proc_read_memory_bin([p_1],0x401000,1,1,64)`, `: proc_get_loader_info([p_1])`,
	`: thread_stop([p_1]) thread_continue([p_1])`, `: thread_suspend([t_1]) thread_resume([t_1])`, `: { thread_stop([]) thread_get_backtrace([],4) thread_continue([]) }`,
	`: version() extensions() services("") services("pa")`, `: print(["x", 3, 0x7, 1.5, p_1])`, `: user_event_create()`, `: pa_counter_create()`,
	`: pa_timer_create4("wall", 1, "histogram") pa_timer_create2("cpu") pa_integrator_create() pa_trace_create(100)`,
	`: pa_counter_read([pa_c_1]) pa_counter_sum([pa_c_1],1) pa_timer_read([pa_t_1])`, `: pa_and_create(2,u_1) pa_sequence_create(3,u_1) pa_count_create(10,u_1)`,
	`thread_reached_addr([p_1],0x401200): print([$proc,$thread])`, `thread_reached_addr([],0x401200): pa_counter_add([pa_c_1],1)`,
	`thread_executed_insn_call([t_1]): thread_get_backtrace([$thread],2)`, `thread_has_started_lib_call([p_1],"usleep"): pa_timer_start([pa_t_1])`,
	`thread_has_ended_lib_call([p_1],"usleep"): pa_timer_stop([pa_t_1])`, `thread_has_started_sys_call([p_1],"read"): print([$time])`,
	`thread_has_ended_sys_call([],"clock_nanosleep"): pa_counter_add_amount([pa_c_1],2)`, `thread_creates_thread([p_1]): print([$new_thread])`,
	`proc_has_terminated([]): print([$proc])`, `proc_has_been_scheduled([p_1]): pa_counter_add([pa_c_1],1)`, `thread_has_blocked([p_2]): pa_integrator_add([pa_i_1],1.5)`,
	`thread_received_signal([p_1],[10,12]): thread_get_info([$thread],3)`, `pa_interval_elapsed(10): pa_counter_reset([pa_c_1]) proc_get_info([],1)`,
	`user_event_has_been_raised(u_1): print([1]) ; print([2])`, `: user_event_raise(u_1,[1,2],0)`, `: csr_enable([c_1]) csr_disable([c_1]) csr_delete([c_1])`,
	`: csr_enable([])`, `thread_has_been_stopped([]): print([$thread]), thread_continue([$thread])`, `: pa_filter(1,1,u_1)`, `: pa_combination_signal([pa_x_1],0)`,
}

// harmful are the services that a mutated request must not name, because they would harm the
// targets or other programs of this machine.
var harmful = []string{
	"proc_create", "proc_attach", "node_attach", "detach", "send_signal", "set_priority", "write_", "migrate", "checkpoint", "restore", "thread_goto", "thread_call",
}

var requestWords = []string{
	"p_1", "p_2", "t_1", "t_2", "t_3", "n_1", "c_1", "c_2", "u_1", "pa_c_1", "pa_t_1", "pa_i_1", "pa_x_1", "$proc", "$thread", "$time", "$node", "$0", "[]", "[p_1,p_1]",
	"print", "thread_stop", "thread_continue", "thread_get_info", "proc_get_info", "pa_counter_add", "thread_reached_addr", "thread_executed_insn", "{", "}", ":", ";", ",", "(", ")",
	`"`, `""`, `"\0"`, "usleep", "read", "main", "[[1,2],[3]]", "1.5e10", "0x401200",
}

// malicious sends mutated OMIS requests, from tools that are created and finalised repeatedly.
func (s *siege) malicious(ctx context.Context) error {
	tool := func(n int) string { return fmt.Sprint("tool-", n) }
	attach := func(ctx context.Context, c *caller, n int) error {
		for i := range targets {
			if _, err := c.must(ctx, http.MethodPost, "/omis?tool="+tool(n), "text/plain", fmt.Sprintf(`: proc_attach3([],%d,"")`, s.pids[i])); err != nil {
				return err
			}
		}
		return nil
	}
	a := attack{what: "OMIS requests", count: s.notation, seeds: requests, words: requestWords}
	a.send = func(ctx context.Context, c *caller, n int, text string) (answer, error) {
		if !harmless(text, harmful) {
			text = ": version()"
		}
		return c.send(ctx, http.MethodPost, "/omis?tool="+tool(n), "text/plain", []byte(text))
	}
	a.begin = attach
	a.tidy = func(ctx context.Context, c *caller, n int) error {
		if _, err := c.must(ctx, http.MethodDelete, "/omis/tools/"+tool(n), "", ""); err != nil {
			return err
		}
		return attach(ctx, c, n)
	}
	// Stopped threads belong to no tool: they continue on request, or when the last tool detaches
	// their process.
	a.end = func(ctx context.Context, c *caller, n int) error {
		_, err := c.must(ctx, http.MethodDelete, "/omis/tools/"+tool(n), "", "")
		return err
	}
	return s.attack(ctx, a)
}
