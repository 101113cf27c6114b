package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/node"
)

func TestProcInfoInBitOrder(t *testing.T) {
	b := start(t)
	p := b.node.Add(812, nil, 812)
	p.Info = node.ProcInfo{
		Argv: []string{"a"}, Envp: []string{"X=1"}, UID: 2, GID: 3, Parent: 4, State: 1, TotalTime: 1500 * time.Millisecond,
		Priority: 12, SystemTime: 250 * time.Millisecond, MemorySize: 14, ResidentSize: 15, MaxResidentSize: 16, IntResidentSize: -1,
		Swaps: -1, Heap: 29, NonHeap: 30, Usage: usage(18, 19, 21, 22, 23, 24, 25, 26, 27, 28),
	}
	b.ask(`: proc_attach3([],812,"")`)
	b.want(": proc_get_info([],0x7fffffff)", "0 OMIS_OK []\n1 OMIS_OK [p_1] "+
		`812,["a"],2,3,["a"],["X=1"],u_0,u_0,n_1,812,1,1.5,12,0.25,14,15,16,-1,18,19,-1,21,22,23,24,25.0,26.0,27,28,29,30`+"\n")
	if got := b.ask(": proc_get_info([],0x80000000)"); !strings.Contains(got, "OMIS_PARAMETER_ERROR(28) [p_1]") {
		t.Error(got)
	}
}

// usage makes a Usage from the numbers of its components in the order of ProcFields.
func usage(minor, major, input, output, voluntary, involuntary, user, queued, read, written int64) node.Usage {
	return node.Usage{
		MinorFaults: minor, MajorFaults: major, FileInput: input, FileOutput: output, VoluntarySwitches: voluntary, InvoluntaryOnes: involuntary,
		UserTime: time.Duration(user) * time.Second, QueuedTime: time.Duration(queued) * time.Second, ReadBytes: read, WrittenBytes: written,
	}
}

func TestThreadInfoInBitOrder(t *testing.T) {
	b := start(t)
	p := b.node.Add(812, nil, 812, 813)
	p.Threads[1].Info = node.ThreadInfo{
		RootFunction: 2, Parent: 812, StackSize: 5, State: 4, TotalTime: 2 * time.Second, Priority: 10, SystemTime: time.Second, Name: "worker",
		Usage: usage(19, 20, 25, 26, 21, 22, 17, 18, 23, 24),
	}
	b.ask(`: proc_attach3([],812,"")`)
	b.want(": thread_get_info([t_2],0x10fff)", "0 OMIS_OK []\n1 OMIS_OK [t_2] p_1,813,2,t_1,u_0,5,n_1,813,4,2.0,10,1.0,\"worker\"\n")
	b.want(": thread_get_info([t_2],0x7ff0000)", "0 OMIS_OK []\n1 OMIS_OK [t_2] \"worker\",17.0,18.0,19,20,21,22,23,24,25,26\n")
	if got := b.ask(": thread_get_info([],0x8000000)"); !strings.Contains(got, "OMIS_PARAMETER_ERROR(28) [t_1,t_2]") {
		t.Error(got)
	}
}

func TestMemoryAndModules(t *testing.T) {
	b := start(t)
	p := b.node.Add(812, nil, 812)
	p.Memory, p.MemoryAt = []byte{1, 2, 3, 4, 5, 6, 7, 8}, 0x1000
	p.Modules = []node.Module{{Path: "/bin/a", CodeStart: 16, CodeLen: 32}, {Path: "/lib/b"}}
	b.ask(`: proc_attach3([],812,"")`)
	b.want(": proc_read_memory([],0x1000,2,4,2) proc_read_memory_bin([],0x1000,2,2,2)",
		"0 OMIS_OK []\n1 OMIS_OK [p_1] [1,2,5,6]\n2 OMIS_OK [p_1] 4#\x01\x02\x03\x04\n")
	b.want(": proc_read_memory([],0x1004,8,8,1)",
		"0 OMIS_OK []\n1 OMIS_PARAMETER_ERROR(28) [p_1] \"cannot read p_1 at 0x1008: nothing is mapped there\"\n")
	for _, bad := range []string{"0,4,2,1", "0,-1,2,1", "0,1048576,1048576,1048576", "0,1,1,9223372036854775807", "-1,1,0,1"} {
		if got := b.ask(": proc_read_memory([]," + bad + ")"); !strings.Contains(got, "OMIS_PARAMETER_ERROR(28)") {
			t.Errorf("%s: %s", bad, got)
		}
	}
	b.want(": proc_get_loader_info([])", "0 OMIS_OK []\n1 OMIS_OK [p_1] 2,[\"/bin/a\",\"\",16,32,0,0,0,0,\"/lib/b\",\"\",0,0,0,0,0,0]\n")
}

func TestCreateAndSignal(t *testing.T) {
	b := start(t)
	b.want(`: proc_create([],"/bin/a",["-v"],["X=1"],["","out"]) thread_get_info([],0)`,
		"0 OMIS_OK []\n1 OMIS_OK [n_1] p_1\n2 OMIS_OK [t_1]\n")
	if l := b.node.Launched(); len(l) != 1 || l[0].Path != "/bin/a" || l[0].Args[0] != "-v" || l[0].Env[0] != "X=1" || l[0].IO[1] != "out" {
		t.Errorf("launched %+v", l)
	}
	b.want(": thread_continue([p_1]) proc_send_signal([p_1],15)", "0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK []\n")
}

// TestBacktracesAtOnce checks that reading the stacks of all threads stops the process once.
func TestBacktracesAtOnce(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 1, 2, 3)
	for _, th := range p.Threads {
		th.Frames = []node.Frame{{PC: 1, FP: 2}, {PC: 3, FP: 4}}
	}
	b.ask(`: proc_attach3([],1,"")`)
	b.want(": thread_get_backtrace([p_1],1)", "0 OMIS_OK []\n1 OMIS_OK [t_1,t_2,t_3] 1,[1,2]\n")
	if p.BacktraceCalls != 1 {
		t.Errorf("the process was stopped %d times", p.BacktraceCalls)
	}
}

func TestRefusedProcess(t *testing.T) {
	b := start(t)
	b.node.Add(812, nil, 812).Refuse = omis.Errorf(omis.NoPermission, "cannot attach to process 812: traced by gdb (pid 790)")
	b.want(`: proc_attach3([],812,"")`, "0 OMIS_OK []\n1 OMIS_NO_PERMISSION(32) [n_1] \"cannot attach to process 812: traced by gdb (pid 790)\"\n")
}

func BenchmarkPrint(b *testing.B) {
	w := start(b)
	b.ReportAllocs()
	for b.Loop() {
		w.reply(": print([1])")
	}
}

// TestInfoOfManyInOrder checks that the results of an action on many objects are in the order of the
// objects, although the engine reads them concurrently, and that identical results are unified.
func TestInfoOfManyInOrder(t *testing.T) {
	b := start(t)
	const many = 200
	var want strings.Builder
	want.WriteString("0 OMIS_OK []\n")
	for pid := 1; pid <= many; pid++ {
		b.node.Add(pid, nil, pid).Info.UID = int64(pid / 2 * 2)
		b.ask(fmt.Sprintf(`: proc_attach3([],%d,"")`, pid))
	}
	fmt.Fprintf(&want, "1 OMIS_OK [p_1] 0\n")
	for uid := 2; uid < many; uid += 2 {
		fmt.Fprintf(&want, "1 OMIS_OK [p_%d,p_%d] %d\n", uid, uid+1, uid)
	}
	fmt.Fprintf(&want, "1 OMIS_OK [p_%d] %d\n", many, many)
	b.want(fmt.Sprintf(": proc_get_info([],%#x)", uint32(node.ProcUID)), want.String())
}
