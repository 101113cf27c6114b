//go:build linux

package machine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/subject"
)

// ratesEnv makes the test binary print the rates of the system.
const ratesEnv = "MIRADOR_TEST_RATES"

func TestMain(m *testing.M) {
	if os.Getenv(ratesEnv) != "" {
		printRates()
		return
	}
	goleak.VerifyTestMain(m)
}

func printRates() {
	m, err := Open("here")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	values, err := m.Info(1 << groupSystemRates)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range values {
		fmt.Println(value(v))
	}
}

func TestWithoutPrivilegeSystemCallsAreNotCounted(t *testing.T) {
	out := subject.RunAgain(t, ratesEnv+"=1", subject.Nobody())
	if f := strings.Fields(out); len(f) != 3 || f[0] == "-1" || f[1] != "-1" || f[2] != "-1" {
		t.Errorf("rates %s", out)
	}
}

func openMachine(t testing.TB) *Machine {
	t.Helper()
	m, err := Open("here")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func info(t testing.TB, m *Machine, bits ...int) []omis.Value {
	t.Helper()
	var flags uint32
	for _, bit := range bits {
		flags |= 1 << bit
	}
	values, err := m.Info(flags)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// says returns the output of another tool.
func says(t testing.TB, command string, args ...string) string {
	t.Helper()
	out, err := exec.Command(command, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", command, args, err)
	}
	return strings.TrimSpace(string(out))
}

// field returns a number from another tool's output: column f of the line that begins
// with prefix.
func field(t testing.TB, text, prefix string, f int) float64 {
	t.Helper()
	for l := range strings.Lines(text) {
		if fields := strings.Fields(l); strings.HasPrefix(strings.TrimSpace(l), prefix) && f < len(fields) {
			n, err := strconv.ParseFloat(strings.Trim(fields[f], ","), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no line %q in\n%s", prefix, text)
	return 0
}

func equal(t *testing.T, what string, got omis.Value, want any) {
	t.Helper()
	if n, ok := got.Number(); ok {
		near(t, what, n, want, 0)
	} else if got.Str != want {
		t.Errorf("%s is %q, want %q", what, got.Str, want)
	}
}

func near(t *testing.T, what string, got float64, want any, tolerance float64) {
	t.Helper()
	if why := far(what, got, want, tolerance); why != "" {
		t.Error(why)
	}
}

// far describes the difference of a figure from an expected one, "" if it is small.
func far(what string, got float64, want any, tolerance float64) string {
	w, err := strconv.ParseFloat(fmt.Sprint(want), 64)
	if err == nil && math.Abs(got-w) <= tolerance {
		return ""
	}
	return fmt.Sprintf("%s is %v, want %v (within %v)", what, got, want, tolerance)
}

func value(v omis.Value) float64 {
	n, _ := v.Number()
	return n
}

// pressures has the kinds of values of a kernel with or without pressure stall information.
func pressures() string {
	if _, err := os.Stat("/proc/pressure/cpu"); err != nil {
		return "iii"
	}
	return "fff"
}

func TestGroupsHaveTheirComponents(t *testing.T) {
	m := openMachine(t)
	kinds := []string{
		"s", "ssssi", "siiiff", "iif", "iiiif", "il", "i",
		"iii", "iiiiifff", "iii", "iiiiii", "iiiiii", "iiiiiii", "iiii", "fiiii" + pressures(),
	}
	letters := map[omis.Kind]string{omis.KindString: "s", omis.KindInt: "i", omis.KindFloat: "f", omis.KindList: "l"}
	signature := func(vs []omis.Value) (s string) {
		for _, v := range vs {
			s += letters[v.Kind]
		}
		return s
	}
	for bit, want := range kinds {
		if got := signature(info(t, m, bit)); got != want {
			t.Errorf("bit %d: %s, want %s", bit, got, want)
		}
	}
	all, err := m.Info(1<<groups - 1)
	if err != nil || signature(all) != strings.Join(kinds, "") {
		t.Errorf("all bits: %s, %v", signature(all), err)
	}
	if vs, err := m.Info(0); err != nil || len(vs) != 0 {
		t.Errorf("no bit: %v, %v", vs, err)
	}
	if _, err := m.Info(1 << groups); err == nil {
		t.Error("a bit beyond the last group is accepted")
	}
}

func parsed(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTotals compares the values that OMIS does not define with the kernel's files.
func TestTotals(t *testing.T) {
	m := openMachine(t)
	v := info(t, m, groupTotals)
	near(t, "load", v[0].Float, strings.Fields(says(t, "cat", "/proc/loadavg"))[0], 0.5)
	free := strings.Fields(says(t, "sh", "-c", "free -b | grep Mem:"))
	near(t, "all memory", float64(v[1].N+v[2].N), free[1], 0)
	near(t, "available memory", float64(v[1].N), free[6], 64<<20)
	var received, sent float64
	for line := range strings.Lines(says(t, "cat", "/proc/net/dev")) {
		if f := strings.Fields(line); len(f) == 17 && f[0] != "lo:" {
			received, sent = received+parsed(t, f[1]), sent+parsed(t, f[9])
		}
	}
	near(t, "received", float64(v[3].N), received, 1<<20)
	near(t, "sent", float64(v[4].N), sent, 1<<20)
	for i, name := range []string{"cpu", "io", "memory"} {
		text, err := os.ReadFile("/proc/pressure/" + name)
		if err != nil {
			equal(t, name, v[5+i], -1)
			continue
		}
		_, total, _ := strings.Cut(strings.Split(string(text), "\n")[0], "total=")
		near(t, "pressure of "+name, v[5+i].Float, parsed(t, total)/1e6, 2)
	}
}

func TestSystem(t *testing.T) {
	m := openMachine(t)
	equal(t, "name", info(t, m, groupName)[0], "here")
	v := info(t, m, groupSystem)
	for i, option := range []string{"-s", "-v", "-r", "-n"} {
		equal(t, "uname "+option, v[i], says(t, "uname", option))
	}
	since, err := time.ParseInLocation(time.DateTime, says(t, "uptime", "-s"), time.Local)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "boot time", value(v[4]), since.Unix(), 2)
}

func TestProcessors(t *testing.T) {
	v := info(t, openMachine(t), groupProcessors)
	equal(t, "architecture", v[0], says(t, "uname", "-m"))
	equal(t, "processors", v[1], says(t, "nproc", "--all"))
	most := min(field(t, says(t, "sysctl", "-n", "kernel.threads-max"), "", 0), field(t, says(t, "sysctl", "-n", "kernel.pid_max"), "", 0))
	equal(t, "processes", v[2], most)
	if mhz := value(v[3]); mhz < 100 || mhz > 10_000 {
		t.Errorf("the clock rate is %v MHz", mhz)
	}
}

func TestRanges(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-1,4,6-7": 5} {
		if n, err := ranges(list); n != want || err != nil {
			t.Errorf("%s: %d, %v", list, n, err)
		}
	}
	for _, list := range []string{"", "a", "3-1", "1,"} {
		if n, err := ranges(list); err == nil {
			t.Errorf("%q: %d", list, n)
		}
	}
}

func TestMemoryAndDisks(t *testing.T) {
	m := openMachine(t)
	page, err := strconv.ParseFloat(says(t, "getconf", "PAGESIZE"), 64)
	if err != nil {
		t.Fatal(err)
	}
	free := says(t, "free", "-b")
	v := info(t, m, groupMemory)
	equal(t, "pages", v[0], field(t, free, "Mem:", 1)/page)
	equal(t, "page size", v[1], page)

	const others = 50_000 // pages that other processes may take or free meanwhile
	for tries := 20; tries > 0; tries-- {
		v, free = info(t, m, groupFreeMemory), says(t, "free", "-b")
		if math.Abs(value(v[0])-field(t, free, "Mem:", 3)/page) <= others && value(v[2]) == field(t, free, "Swap:", 3)/page {
			break
		}
	}
	near(t, "free pages", value(v[0]), field(t, free, "Mem:", 3)/page, others)
	equal(t, "used and free pages", omis.Float(value(v[0])+value(v[1])), field(t, free, "Mem:", 1)/page)
	equal(t, "free swap", v[2], field(t, free, "Swap:", 3)/page)

	v = info(t, m, groupDisks)
	_, df, _ := strings.Cut(says(t, "df", "-B1", "--output=size", os.TempDir()), "\n")
	size := field(t, df, "", 0)
	disks, total := hardwareDisks(t)
	equal(t, "disks", v[0], disks)
	equal(t, "disk space", v[1], math.Floor(total/page))
	equal(t, "temporary space", v[2], size/page)
	equal(t, "swap", v[3], field(t, free, "Swap:", 1)/page)
}

// hardwareDisks returns the disks in lsblk that are hardware.
func hardwareDisks(t *testing.T) (n int, size float64) {
	for l := range strings.Lines(says(t, "lsblk", "-dbnro", "NAME,SIZE")) {
		f := strings.Fields(l)
		if !regexp.MustCompile(`^(loop|zram|ram|dm-|md)`).MatchString(f[0]) {
			n, size = n+1, size+field(t, l, "", 1)
		}
	}
	return n, size
}

func TestNetworkLinks(t *testing.T) {
	v := info(t, openMachine(t), groupNetwork)
	list := says(t, "ip", "-o", "-4", "addr", "show", "up", "scope", "global")
	var want []string
	for l := range strings.Lines(list) {
		addr, _, _ := strings.Cut(strings.Fields(l)[3], "/")
		want = append(want, addr)
	}
	equal(t, "links", v[0], len(want))
	if len(v[1].List) != 4*len(want) {
		t.Fatalf("links: %+v", v[1])
	}
	for i, addr := range want {
		equal(t, "address", v[1].List[4*i+1], addr)
		if speed := value(v[1].List[4*i+3]); speed <= 0 {
			t.Errorf("through %s: %v", addr, speed)
		}
	}
}

func TestBenchmarksRunOnce(t *testing.T) {
	m := openMachine(t)
	figures := func() [4]float64 {
		cpu, mem, disk := info(t, m, groupProcessors), info(t, m, groupMemory), info(t, m, groupDisks)
		return [4]float64{value(cpu[4]), value(cpu[5]), value(mem[2]), value(disk[4])}
	}
	first := figures()
	for i, f := range first {
		if f <= 0 {
			t.Errorf("benchmark %d: %v", i, f)
		}
	}
	start := processorTime(t)
	if again := figures(); again != first {
		t.Errorf("%v, then %v", first, again)
	}
	if d := processorTime(t) - start; d > 50*time.Millisecond {
		t.Errorf("asked again, the benchmarks took %v", d)
	}
}

// processorTime returns the CPU time of this process. Elapsed times on a busy machine
// would not show that a benchmark is not run again.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestLimitOfLogins(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := openMachine(t)
	m.files.limits = dir
	equal(t, "without files", info(t, m, groupUsers)[0], -1)
	write("limits.conf", "# * - maxsyslogins 3\nann - maxsyslogins 1\n* soft maxsyslogins 2\n* - maxlogins 4\n")
	equal(t, "for no user", info(t, m, groupUsers)[0], -1)
	write("limits.conf", "* hard maxsyslogins 50 # all\n")
	equal(t, "for all", info(t, m, groupUsers)[0], 50)
	write("limits.d/more.conf", "* - maxsyslogins 80\n")
	equal(t, "in a further file", info(t, m, groupUsers)[0], 80)
}

// TestLoad compares the load with other tools. Other processes begin and end all the
// time, so it reads all again when they differ.
func TestLoad(t *testing.T) {
	m := openMachine(t)
	var wrong []string
	for range 50 {
		if wrong = wrongLoad(t, m); wrong == nil {
			return
		}
	}
	t.Errorf("even the last of several tries differs: %s", strings.Join(wrong, "; "))
}

func wrongLoad(t *testing.T, m *Machine) (wrong []string) {
	t.Helper()
	near := func(what string, got omis.Value, want any, tolerance float64) {
		if why := far(what, value(got), want, tolerance); why != "" {
			wrong = append(wrong, why)
		}
	}
	v := info(t, m, groupLoad)
	if value(v[0]) < 1 {
		wrong = append(wrong, "no process runs")
	}
	// The fourth field is "running/all".
	if n, _, ok := strings.Cut(strings.Fields(says(t, "cat", "/proc/loadavg"))[3], "/"); ok {
		near("running processes", v[0], n, 30)
	}
	var sleeping int
	for l := range strings.Lines(says(t, "ps", "-e", "-o", "stat=")) {
		if l[0] == 'S' || l[0] == 'I' {
			sleeping++
		}
	}
	near("sleeping processes", info(t, m, groupLoad)[3], sleeping, 10)
	// uptime prints "load average: 0.10, 0.20, 0.30".
	_, averages, _ := strings.Cut(says(t, "uptime"), "average: ")
	for i, want := range strings.Split(averages, ", ") {
		near("load average", v[5+i], want, 0.5)
	}
	for _, i := range []int{2, 4} {
		near("a value that Linux does not have", v[i], -1, 0)
	}
	return wrong
}

// utmp writes a file as login programs do.
func utmp(t *testing.T, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, entries); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "utmp")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func login(kind int16, user, line, host string, pid int) entry {
	e := entry{Type: kind, PID: int32(pid)}
	copy(e.User[:], user)
	copy(e.Line[:], line)
	copy(e.Host[:], host)
	e.Time[0] = int32(time.Now().Unix())
	return e
}

func TestLogins(t *testing.T) {
	const bootTime, loginProcess = 2, 6
	m := openMachine(t)
	dev := t.TempDir()
	m.files.dev = dev
	for name, idle := range map[string]time.Duration{"tty1": time.Hour, "pts-1": 0} {
		path := filepath.Join(dev, name)
		when := time.Now().Add(-idle)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	self := os.Getpid()
	m.files.utmp = utmp(t,
		login(bootTime, "reboot", "~", "6.1", 0),
		login(loginProcess, "LOGIN", "tty2", "", self),
		login(userProcess, "ann", "tty1", "", self),
		login(userProcess, "bob", "tty7", ":0", self),
		login(userProcess, "eve", "pts-1", "192.0.2.7", self),
	)
	v := info(t, m, groupLogins)
	for i, want := range []int{2, 0, 1, 1} {
		equal(t, fmt.Sprintf("component %d", i), v[i], want)
	}
	// The command "who" reads the same file.
	if out := says(t, "who", m.files.utmp); strings.Count(out, "\n")+1 != 3 {
		t.Errorf("who prints\n%s", out)
	}

	m.files.utmp = utmp(t, login(userProcess, "gone", "pts-1", "192.0.2.7", 1<<22-1))
	equal(t, "sessions that died", info(t, m, groupLogins)[2], 0)
	m.files.utmp = filepath.Join(dev, "none")
	equal(t, "without a file", info(t, m, groupLogins)[0], 0)
}

func TestPagingIsThatOfVmstat(t *testing.T) {
	before := says(t, "vmstat", "-s")
	m := openMachine(t)
	counts, err := kernelCounters{m}.read()
	if err != nil {
		t.Fatal(err)
	}
	after := says(t, "vmstat", "-s")
	for counter, name := range map[int]string{pagedIn: "K paged in", pagedOut: "K paged out", contextSwitches: "CPU context switches"} {
		least, most := column(t, before, name), column(t, after, name)
		if n := float64(counts[counter]); n < least || n > most {
			t.Errorf("%s: %v, vmstat says %v to %v", name, n, least, most)
		}
	}
}

// column returns the number before a name in the output of vmstat -s.
func column(t *testing.T, text, name string) float64 {
	t.Helper()
	for l := range strings.Lines(text) {
		if strings.Contains(l, name) {
			return field(t, l, "", 0)
		}
	}
	t.Fatalf("no %s in\n%s", name, text)
	return 0
}

func TestRatesFollowWhatHappens(t *testing.T) {
	m := openMachine(t)
	done := make(chan struct{})
	var busy sync.WaitGroup
	for range 4 { // at the same time, since each takes long on a busy machine
		busy.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					exec.Command("/bin/true").Run()
				}
			}
		})
	}
	busy.Go(func() {
		file, err := os.Open("/dev/zero")
		if err != nil {
			t.Error(err)
			return
		}
		defer file.Close()
		b := make([]byte, 1)
		for {
			select {
			case <-done:
				return
			default:
				unix.Read(int(file.Fd()), b)
			}
		}
	})
	v := info(t, m, groupSystemRates, groupDiskRates)
	close(done)
	busy.Wait()
	const switches, execs, calls, reads = 0, 1, 2, 7
	for i, least := range map[int]float64{switches: 20, execs: 20, calls: 2000, reads: 1500} {
		if n := value(v[i]); n < least || n > 1e7 {
			t.Errorf("component %d: %v a second, expected %v and more", i, n, least)
		}
	}
	if value(v[calls]) < value(v[reads]) {
		t.Errorf("%v calls, %v of them read", value(v[calls]), value(v[reads]))
	}
}

func TestNetworkRates(t *testing.T) {
	m := openMachine(t)
	if _, err := m.kernel.rates(); err != nil { // starts the sampler
		t.Fatal(err)
	}
	benchNetwork("127.0.0.1")
	v := info(t, m, groupNetworkRates)
	if n := value(v[0]); n < 10 {
		t.Errorf("%v local packets a second", n)
	}
	if value(v[1]) < value(v[2])+value(v[3])-1 || value(v[1]) > value(v[2])+value(v[3])+1 {
		t.Errorf("fast packets: %+v", v[1:4])
	}
}
