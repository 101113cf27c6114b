package engine_test

import (
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/syntax"
)

// TestAllRegisters checks that a request for more registers than exist returns all of them, if it begins
// with register 0.
func TestAllRegisters(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, []string{"a"}, 11)
	p.Threads[0].Ints[31], p.Threads[0].Floats[23] = 7, 0.5
	b.ask(`: proc_attach3([],1,"")`)
	ints, floats := strings.Repeat("0,", 31)+"7", strings.Repeat("0.0,", 23)+"0.5"
	b.want(": thread_read_int_regs([],0,33) thread_read_fp_regs([],0,1000) thread_read_int_regs([],1,32)",
		"0 OMIS_OK []\n1 OMIS_OK [t_1] ["+ints+"]\n2 OMIS_OK [t_1] ["+floats+"]\n3 OMIS_PARAMETER_ERROR(28) [t_1] \"there is no register 32\"\n")
}

func TestRegisters(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"")`)
	b.want(": thread_write_int_regs([],0,[1,-1,0xffffffffffffffff]) thread_read_int_regs([t_1],0,4)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK [t_1] [1,18446744073709551615,18446744073709551615,0]\n")
	b.want(": thread_write_fp_regs([t_2],23,[1.5]) thread_write_fp_regs([t_2],0,[2]) thread_read_fp_regs([t_2],0,1) thread_read_fp_regs([t_2],23,1)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK []\n3 OMIS_OK [t_2] [2.0]\n4 OMIS_OK [t_2] [1.5]\n")
	b.want(": thread_write_int_regs([t_1],7,[0x1000]) thread_goto([t_1],0x40) thread_call([t_1],0x50) thread_read_int_regs([t_1],16,1) thread_read_int_regs([t_1],7,1)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK []\n3 OMIS_OK []\n4 OMIS_OK [t_1] [80]\n5 OMIS_OK [t_1] [4088]\n")
	for _, bad := range []string{"thread_read_int_regs([],31,2)", "thread_read_int_regs([],-1,1)", "thread_read_fp_regs([],0,5000)", "thread_write_int_regs([],32,[1])", "thread_read_int_regs([],0,9223372036854775807)"} {
		if got := b.ask(": " + bad); !strings.Contains(got, "1 OMIS_PARAMETER_ERROR(28) [t_1,t_2]") {
			t.Errorf("%s: %s", bad, got)
		}
	}
	if p.Threads[1].Ints[0] != 1 {
		t.Error("[] does not mean all threads")
	}
}

func TestWriteMemory(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11)
	p.Memory, p.MemoryAt = make([]byte, 12), 0x1000
	b.ask(`: proc_attach3([],1,"")`)
	b.want(": proc_write_memory([],0x1000,2,4,[1,2,3,-1,5]) proc_write_memory_bin([p_1],0x1002,2,2,4#abcd) proc_read_memory([],0x1000,1,2,5) proc_read_memory_bin([],0x1000,9,9,1)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK []\n3 OMIS_OK [p_1] [1,97,99,0,5]\n4 OMIS_OK [p_1] 9#\x01\x02abcd\x00\x00\x05\n")
	for _, bad := range []string{"0x1000,1,1,[256]", "0x1000,0,1,[1]", "0x1000,2,1,[1,2]", "0x1000,1,-1,[1]"} {
		if got := b.ask(": proc_write_memory([]," + bad + ")"); !strings.Contains(got, "OMIS_PARAMETER_ERROR(28) [p_1]") {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

// TestUndo checks that a service that fails undoes its effect on the object, and otherwise replies with a
// fatal error (OMIS 7.2.3).
func TestUndo(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11)
	p.Memory, p.MemoryAt = []byte("abcdefgh"), 0x1000
	refused := omis.Errorf(omis.OSError, "the page at 0x1004 is read-only")
	p.ReadOnly = func(addr uint64) error {
		if addr == 0x1004 {
			return refused
		}
		return nil
	}
	b.ask(`: proc_attach3([],1,"")`)
	write := ": proc_write_memory([],0x1000,1,2,[1,2,3])"
	b.want(write, "0 OMIS_OK []\n1 OMIS_OS_ERROR(30) [p_1] \"the page at 0x1004 is read-only\"\n")
	b.want(": proc_read_memory_bin([],0x1000,8,8,1)", "0 OMIS_OK []\n1 OMIS_OK [p_1] 8#abcdefgh\n")
	writes := 0
	p.ReadOnly = func(addr uint64) error {
		if writes++; writes > 2 {
			return refused
		}
		return nil
	}
	b.want(write, "0 OMIS_OK []\n1 OMIS_OS_ERROR|OMIS_FATAL(31) [p_1] \"the page at 0x1004 is read-only; 2 of 3 blocks are written and cannot be restored: the page at 0x1004 is read-only\"\n")
}

func TestSuspend(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"")`)
	b.want(": thread_suspend([p_1]) thread_suspend([t_1]) thread_stop([t_1]) thread_continue([]) thread_resume([])",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK []\n3 OMIS_OK []\n4 OMIS_OK []\n5 OMIS_OK []\n")
	if p.Threads[0].Suspended != 1 || p.Threads[1].Suspended != 0 || len(p.StoppedThreads()) != 0 {
		t.Errorf("threads %+v", p.Threads)
	}
	b.want(": thread_resume([])", "0 OMIS_OK []\n1 OMIS_PARAMETER_ERROR(28) [t_2] \"thread 12 is not suspended\"\n1 OMIS_OK []\n")
	b.ask(": thread_suspend([]) thread_suspend([])")
	if err := b.tool.Finalize(); err != nil || p.Threads[0].Suspended != 0 || p.Threads[1].Suspended != 0 {
		t.Errorf("a tool left threads suspended: %v", err)
	}
}

// TestErrorsOfNoRequest checks that the error handler receives errors that belong to no request
// (OMIS 7.1.3).
func TestErrorsOfNoRequest(t *testing.T) {
	b := start(t)
	b.node.Add(1, []string{"a"}, 11)
	b.ask(`: proc_attach3([],1,"") thread_suspend([])`)
	b.node.Script = func(method string) error {
		if method == "Resume" {
			return omis.Errorf(omis.OSError, "it does not wake up")
		}
		return nil
	}
	handled := make(chan string, 1)
	b.tool.HandleErrors(func(r omis.Reply) { handled <- syntax.PrintReply(r) })
	b.want(": proc_detach([])", "0 OMIS_OK []\n1 OMIS_OK []\n")
	if got := <-handled; got != "0 OMIS_OS_ERROR(30) [t_1] \"it does not wake up\"\n" {
		t.Errorf("the error handler received %s", got)
	}
}

func TestThreadControl(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"") thread_get_info([],0)`)
	b.want(": thread_send_signal([t_2],10) thread_set_priority([t_2],5) proc_set_priority([],7) thread_send_signal([],8589934592)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK []\n3 OMIS_OK []\n4 OMIS_PARAMETER_ERROR(28) [t_1,t_2] \"sig of thread_send_signal does not fit into 32 bits\"\n")
	if th := p.Threads[1]; len(th.Signals) != 1 || th.Nice != 5 || p.Nice != 7 {
		t.Errorf("thread %+v", th)
	}
}

func TestThreadDetach(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"") thread_get_info([],0)`)
	c := b.listen("thread_reached_addr([],0x10) : print([$thread])", 0)
	b.ask(": csr_enable([])")
	b.want(": thread_detach([t_2]) thread_get_info([],0) thread_get_info([t_2],0)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK [t_1]\n3 OMIS_UNKNOWN_OBJECT(24) [t_2] \"t_2 is not attached to this tool\"\n")
	p.Reach(12, 0x10, 0)
	p.Reach(11, 0x10, 0)
	c.want("0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK []\n", "0 OMIS_CSR_DISABLED(6) [] c_1\n1 OMIS_OK [t_2]\n",
		"0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_OK [] 1,[t_1]\n")
	if !p.Threads[1].Released {
		t.Error("the node observes a detached thread")
	}
	other := b.engine.Tool("other")
	if got := b.askBy(other, ": proc_attach([p_1]) thread_get_info([],0)"); !strings.HasSuffix(got, "2 OMIS_OK [t_1]\n") {
		t.Errorf("another tool sees the detached thread: %s", got)
	}
	b.askBy(other, ": proc_detach([p_1])")
	b.ask(": proc_detach([p_1]) proc_attach([p_1])")
	b.want(": thread_get_info([],0)", "0 OMIS_OK []\n1 OMIS_OK [t_1,t_2]\n")
	p.Reach(12, 0x10, 0)
	eventually(t, func() bool {
		for {
			select {
			case r := <-c.replies:
				if r[0][0].Status == omis.CSRTriggered && r[0][0].Objects[0] == "t_2" {
					return true
				}
			default:
				return false
			}
		}
	})
}

func TestNodeInfo(t *testing.T) {
	b := start(t)
	b.node.Groups[3] = []omis.Value{omis.Int(100), omis.Int(4096), omis.Float(-1)}
	b.want(`: node_attach2("here") node_get_info([],0) node_get_info([],9) node_get_info([],0x8000)`,
		"0 OMIS_OK []\n1 OMIS_OK [] n_1\n2 OMIS_OK [n_1]\n3 OMIS_OK [n_1] \"here\",100,4096,-1.0\n4 OMIS_PARAMETER_ERROR(28) [n_1] \"node_get_info has no components for flags 0x8000\"\n")
}

func TestCheckpoint(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, []string{"a"}, 11)
	b.ask(`: proc_attach3([],1,"")`)
	b.want(`: proc_checkpoint([],"x") proc_restore("x") proc_restore("y") proc_get_info([],2)`,
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK [] [p_2],1\n3 OMIS_UNKNOWN_OBJECT(24) [] \"there is no checkpoint \\\"y\\\"\"\n4 OMIS_OK [p_1,p_2] [\"a\"]\n")
	if p.Threads[0].Suspended != 0 {
		t.Error("the process is still suspended")
	}
}

// TestMissingCapabilities checks that services that the node cannot provide are refused with the reason, and
// that "services" omits them.
func TestMissingCapabilities(t *testing.T) {
	b := startPlain(t)
	b.node.Add(1, nil, 11)
	b.ask(`: proc_attach3([],1,"")`)
	for request, reason := range map[string]string{
		"thread_read_int_regs([],0,1)":    "registers",
		"proc_write_memory([],0,1,1,[1])": "cannot write",
		"thread_suspend([])":              "thread_stop",
		"thread_send_signal([],1)":        "single threads",
		`proc_checkpoint([],"x")`:         "CRIU",
		"proc_migrate([],n_1)":            "CRIU",
		"message_create()":                "message-passing platform",
	} {
		if got := b.ask(": " + request); !strings.HasPrefix(got, "0 OMIS_UNSUPPORTED_SERVICE(20) []") || !strings.Contains(got, reason) {
			t.Errorf("%s: %s", request, got)
		}
	}
	b.want(": node_get_info([],1) thread_detach([])", "0 OMIS_OK []\n1 OMIS_OK [n_1] \"here\"\n2 OMIS_OK []\n")
	if got := b.ask(": node_get_info([],2)"); !strings.Contains(got, "1 OMIS_UNSUPPORTED_SERVICE(20) [n_1]") {
		t.Error(got)
	}
	if got := b.ask(`: services("")`); strings.Contains(got, "thread_suspend") || !strings.Contains(got, `1,["node_get_info"]`) {
		t.Error(got)
	}
}
