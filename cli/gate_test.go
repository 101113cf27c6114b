package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mirador/cli/gate/report"
	"mirador/examples/targets"
	"mirador/omis/linux/subject"
)

// gated is a directory with the programs of a gate.
type gated struct {
	dir, mark string
	gateway   string // "": each gate starts one
}

// share makes all gates use one gateway, because to start one takes longer than many gates.
func (g *gated) share(t *testing.T) {
	g.gateway = "unix:" + startServe(t, os.Geteuid()).socket
}

// newGated compiles testdata/gate/work.c as base/work and, with the given macros, as head/work.
func newGated(t *testing.T, macros ...string) *gated {
	t.Helper()
	g := &gated{dir: targets.SharedDir(t), mark: targets.NoneLeft(t)}
	const source = "testdata/gate/work.c"
	for side, args := range map[string][]string{"base": {"-O1", source}, "head": append(macros, "-O1", source)} {
		err := os.Mkdir(filepath.Join(g.dir, side), 0o755)
		if err == nil {
			err = os.Rename(subject.Compile(t, "work", args...), filepath.Join(g.dir, side, "work"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// command returns a gate command on these requests.
func (g *gated) command(t *testing.T, requests string, args ...string) *exec.Cmd {
	t.Helper()
	file := fmt.Sprintf("<g:gate xmlns:g=\"urn:mirador:gate\">\n%s\n</g:gate>\n", requests)
	if err := os.WriteFile(filepath.Join(g.dir, "gate.xml"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(miradorPath, append([]string{"gate", "run"}, args...)...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), g.mark, "XDG_CACHE_HOME="+filepath.Dir(miradorPath), "MIRADOR_GATEWAY="+g.gateway)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// run runs a gate and returns its output, its errors and its status.
func (g *gated) run(t *testing.T, requests string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := g.command(t, requests, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

const countPrice = `<instrreq><codeRegion from="work:price"/><metric name="COUNT" %s/></instrreq>`

// TestGateExact checks that one more call in a hundred thousand is found, that a gate passes without it,
// that the constructors' calls count, and that failures are explained.
func TestGateExact(t *testing.T) {
	t.Parallel()
	g := newGated(t, "-DEXTRA=1")
	g.share(t)
	base, head := "--base=base/work 100000", "--head=head/work 100000"
	for _, test := range []struct {
		limit  string
		args   []string
		status int
		want   string
	}{
		{`g:exact="100000"`, []string{"--head=base/work 100000"}, exitOK, "PASSED"},
		{`g:exact="100000"`, []string{head}, exitGateFailed, "100001 is more than 100000. Of these: main/loop1/call.price 100000; early/call.price 1\n"},
		{`g:exact="true"`, []string{head, base}, exitGateFailed, "100001 is more than 100000. Of these: main/loop1/call.price 100000 (base: 99999)\n"},
		{`g:exact="true"`, []string{"--head=base/work 10", "--base=head/work 9"}, exitOK, "PASSED"},
		{`g:max-change="10%"`, []string{head, base}, exitOK, "PASSED"},
		{`g:max-change="0%"`, []string{head, base}, exitGateFailed, "100001 is more than 100000"},
		{`g:max-change="0%"`, []string{"--head=base/work 10", "--base=base/work 11"}, exitOK, "PASSED"},
		{`g:min="200000"`, []string{head}, exitGateFailed, "is less than 200000"},
	} {
		out, errs, status := g.run(t, fmt.Sprintf(countPrice, test.limit), test.args...)
		if status != test.status || !strings.Contains(out, test.want) {
			t.Errorf("%s %q: status %d, want %d\n%s%s", test.limit, test.args, status, test.status, out, errs)
		}
	}
	const slow = `<instrreq><codeRegion from="work:early"/><metric name="WC_TIME" g:max="1 ns" g:of="mean"/></instrreq>`
	if out, errs, _ := g.run(t, slow, "--head=base/work 10", "--runs=7"); !strings.Contains(out, ". In each call of head: price, which it calls 1 times, takes ") {
		t.Errorf("a long time is not explained\n%s%s", out, errs)
	}
}

// TestGateRuns measures programs in all ways that a gate has, with limits that no load of the
// machine can reach.
func TestGateRuns(t *testing.T) {
	g := newGated(t)
	g.share(t)
	times := `<instrreq><codeRegion from="price"/><metric name="WC_TIME" g:max="100 s" g:of="p99"/><metric name="WC_TIME" g:max="10 ns" g:of="mean"/></instrreq>
<instrreq><codeRegion from="price"/><metric name="COUNT" g:min="100"/></instrreq>`
	stay := exec.Command(filepath.Join(g.dir, "base/work"), "1", "stay")
	stay.Env = append(os.Environ(), g.mark)
	stay.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := stay.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stay.Process.Kill()
		stay.Wait()
	}()
	for name, args := range map[string][]string{
		"ends":    {"--head=head/work 1000", "--runs=7"},
		"stays":   {"--head=head/work 1 stay", "--for=2s", "--runs=7"},
		"load":    {"--head=head/work 1 stay", "--load=sleep 0.2", "--ready=true", "--runs=7"},
		"running": {"--head=" + strconv.Itoa(stay.Process.Pid), "--for=2s", "--runs=7"},
	} {
		out, errs, status := g.run(t, times, append(args, "--json")...)
		var rep report.Report
		if err := json.Unmarshal([]byte(out), &rep); err != nil || status != exitGateFailed || len(rep.Results) != 3 {
			t.Errorf("%s: status %d, %v\n%s%s", name, status, err, out, errs)
			continue
		}
		for i, want := range []string{"passed", "passed", "failed"} { // exact limits come first
			if r := rep.Results[i]; string(r.Outcome) != want || filepath.Base(r.File) != "work.c" || r.Line == 0 || r.Head == nil {
				t.Errorf("%s: want %s: %+v", name, want, r)
			}
		}
	}
	eventually(t, "a process that the gate had not started goes on", func() bool { return field(stay.Process.Pid, "State") == "R (running)" })
}

// TestGateServer counts exactly what a load causes, not the attempts of --ready.
func TestGateServer(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.share(t)
	const connect = "exec 3<>/dev/tcp/127.0.0.1/{port} || exit 1; read <&3"
	out, errs, status := g.run(t, fmt.Sprintf(countPrice, `g:exact="20"`), "--head=head/work {port} serve",
		"--ready=bash -c '"+connect+"; exit 0'", "--load=bash -c 'for i in {1..20}; do "+connect+"; done; exit 0'")
	if status != exitOK || !strings.Contains(out, "PASSED") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

// TestGateWithoutPrivileges judges counts, system calls and times as an ordinary user.
func TestGateWithoutPrivileges(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	requests := fmt.Sprintf(countPrice, `g:exact="1000"`) + `<instrreq><metric name="SYSCALL_COUNT" g:max="1000"/></instrreq>
<instrreq><codeRegion from="price"/><metric name="WC_TIME" g:max="100 s"/></instrreq>`
	cmd := g.command(t, requests, "--head=base/work 1000", "--runs=7")
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME=", "HOME=/nonexistent")
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	out, _ := cmd.CombinedOutput()
	if status := cmd.ProcessState.ExitCode(); status != exitOK || strings.Count(string(out), "PASSED ") != 3 {
		t.Errorf("status %d\n%s", status, out)
	}
}

// TestGateRefuses checks bad input: its status, and a sentence that helps.
func TestGateRefuses(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.share(t)
	good := fmt.Sprintf(countPrice, `g:max="1"`)
	for _, test := range []struct {
		requests string
		args     []string
		status   int
		want     string
	}{
		{fmt.Sprintf(countPrice, `g:max="1" g:min="2"`), []string{"--head=head/work 1"}, exitUsage, "line 2, column"},
		{fmt.Sprintf(countPrice, `g:exact="true"`), []string{"--head=head/work 1"}, exitUsage, "give a --base"},
		{good, nil, exitUsage, "--head is needed"},
		{good, []string{"--head=head/work 1", "-f", "none.xml"}, exitUsage, "none.xml"},
		{good, []string{"--head=head/work 1 | cat"}, exitFailed, "without a shell"},
		{good, []string{"--head=head/nothing"}, exitFailed, "cannot start head/nothing"},
		{good, []string{"--head=head/work 1 crash"}, exitFailed, "signal aborted"},
		{good, []string{"--head=head/work 1 fail"}, exitFailed, "status 3\nno such order"},
		{good, []string{"--head=head/work 1 stay", "--max-time=4s"}, exitFailed, "has not ended yet…use --load or --for"},
		{good, []string{"--head=head/work 1 fork"}, exitFailed, "(work), which it has started, goes on"},
		{good, []string{"--head=head/work 1 stay", "--load=sleep 60", "--max-time=4s"}, exitFailed, "sleep 60\" did not end"},
		{good, []string{"--head=head/work 1", "--for=20s"}, exitFailed, "shorter --for"},
		{good, []string{"--head=head/work 1 stay", "--load=exit 7"}, exitFailed, "the load failed"},
		{good, []string{"--head=head/work 1 stay", "--ready=false", "--load=true", "--max-time=4s"}, exitFailed, "not ready in time"},
		{good, []string{"--head=head/work 1", "--gateway=unix:/nonexistent/s"}, exitUnreachable, "no gateway"},
		{strings.Replace(good, "price", "prise", 1), []string{"--head=head/work 1"}, exitFailed, "prise"},
	} {
		out, errs, status := g.run(t, test.requests, test.args...)
		lacks := func(part string) bool { return !strings.Contains(errs, part) }
		if status != test.status || slices.ContainsFunc(strings.Split(test.want, "…"), lacks) {
			t.Errorf("%q: status %d, want %d and %q\n%s%s", test.args, status, test.status, test.want, out, errs)
		}
	}
}

// TestGateKilled kills a gate at several moments: the keeper ends its programs and its gateway,
// and removes its files. NoneLeft checks the processes.
func TestGateKilled(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	temporary := filepath.Join(g.dir, "tmp")
	if err := os.Mkdir(temporary, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second} {
		cmd := g.command(t, fmt.Sprintf(countPrice, `g:max="1"`), "--head=head/work 1 stay", "--for=1m")
		cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
		if err := startTied(cmd); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after)
		cmd.Process.Kill()
		cmd.Wait()
		eventually(t, "the keeper removes the gate's files", func() bool {
			left, err := os.ReadDir(temporary)
			return err == nil && len(left) == 0
		})
	}
}

// TestGateFormats writes all formats of a failure, as in GitHub Actions.
func TestGateFormats(t *testing.T) {
	t.Parallel()
	g := newGated(t, "-DEXTRA=1")
	cmd := g.command(t, fmt.Sprintf(countPrice, `g:exact="1000"`), "--head=head/work 1000", "--junit=j.xml", "--markdown=m.md", "--sarif=s.json", "--openmetrics=o.txt", "--benchfmt=b.txt")
	cmd.Env = append(cmd.Env, "GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY="+filepath.Join(g.dir, "summary.md"))
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != exitGateFailed {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "::error file=") || !strings.Contains(string(out), "work.c,line=") {
		t.Errorf("no annotation at a line of the source:\n%s", out)
	}
	for file, want := range map[string]string{"j.xml": "<failure message=", "m.md": "| FAILED |", "s.json": `"startLine"`, "o.txt": "# EOF", "b.txt": "BenchmarkCOUNT/region=work:price 1 1001 events", "summary.md": "1001 is more than 1000"} {
		if text, err := os.ReadFile(filepath.Join(g.dir, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
	}
}

// TestGateCheck judges a document and outputs of go test, without a gateway, and refuses bad input.
func TestGateCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"gate.xml": `<g:gate xmlns:g="urn:mirador:gate"><instrreq><codeRegion from="a:b"/><metric name="COUNT" g:max="10"/></instrreq>
<g:benchmark name="A"><metric name="sec/op" g:max-change="5%"/></g:benchmark></g:gate>`,
		"good.xml": `<measurement value="10"/>`, "bad.xml": `<measurement value="11"/>`,
		"base.txt": strings.Repeat("BenchmarkA-2 1 100 ns/op\n", 5), "head.txt": strings.Repeat("BenchmarkA-2 1 110 ns/op\n", 5), "few.txt": "BenchmarkA 1 100 ns/op\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		files  string
		status int
		want   string
	}{
		{"good.xml", exitOK, "PASSED"},
		{"bad.xml", exitGateFailed, "11 is more than 10"},
		{"base.txt base.txt", exitOK, "PASSED"},
		{"head.txt base.txt", exitGateFailed, "+10.00 %"},
		{"head.txt few.txt", exitGateUnclear, "at least 5 of each"},
		{"head.txt", exitUsage, "give files of base"},
		{"none.xml", exitFailed, "none.xml"},
		{"gate.xml", exitFailed, "gate"},
		{"", exitUsage, ""},
	} {
		cmd := exec.Command(miradorPath, append([]string{"gate", "check"}, strings.Fields(test.files)...)...)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		if status := cmd.ProcessState.ExitCode(); status != test.status || !strings.Contains(string(out), test.want) {
			t.Errorf("%s: status %d, want %d and %q\n%s", test.files, status, test.status, test.want, out)
		}
	}
}

// TestGateInit writes a gate of a program and judges the program by it.
func TestGateInit(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	g.share(t)
	initial := func(args ...string) (string, int) {
		cmd := g.command(t, "")
		cmd.Args = append([]string{miradorPath, "gate", "init", "-f", "first.xml", "--runs=7"}, args...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, status := initial("--head=base/work 1000"); status != exitOK || !strings.Contains(out, "mirador gate run -f first.xml") {
		t.Fatalf("status %d\n%s", status, out)
	}
	text, err := os.ReadFile(filepath.Join(g.dir, "first.xml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<codeRegion from="work:price"/>`, `g:exact="1000"`, `g:of="p99"`, "the same in all runs", `g:max-change=`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	out, errs, status := g.run(t, "", "-f", "first.xml", "--head=base/work 1000", "--runs=7")
	if status != exitOK && status != exitGateUnclear || !strings.Contains(out, "PASSED   ") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"--head=base/work", exitUsage, "first.xml exists"},
		{"--force --head=base/work|1|crash", exitFailed, "signal aborted"},
		{"--force --functions=prise --head=base/work|1", exitFailed, "no function whose name begins with prise"},
		{"--force", exitUsage, "--head is needed"},
	} {
		args := strings.Fields(test.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "|", " ")
		}
		if out, status := initial(args...); status != test.status || !strings.Contains(out, test.want) {
			t.Errorf("%s: status %d, want %d and %q\n%s", test.args, status, test.status, test.want, out)
		}
	}
}
