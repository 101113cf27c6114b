package cli

import (
	"encoding/json"
	"errors"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mirador/omis/linux/subject"
)

// TestProbeCommands plants, reads, watches and removes probes of a program that counts its
// own calls.
func TestProbeCommands(t *testing.T) {
	t.Parallel()
	s := startServe(t, 0)
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	before := c.says("stop")
	if got := s.must(t, "", "probe", "add", "--region", "tally:work", "--metric", "COUNT,WC_TIME", "--process", "*"); got != "probe-1 inline\n" {
		t.Fatalf("planted is %q", got)
	}
	c.says("go")
	time.Sleep(50 * time.Millisecond)
	calls := strconv.Itoa(c.says("stop") - before)

	var values []probeValue
	if err := json.Unmarshal([]byte(s.must(t, "", "probe", "value", "probe-1", "--json")), &values); err != nil {
		t.Fatal(err)
	}
	if len(values) != 2 || values[0].Value.String() != calls || values[0].Metric != "COUNT" || values[0].Process != "p_1" || values[1].Unit != "ms" {
		t.Errorf("the values are %+v, want %s calls", values, calls)
	}
	table := regexp.MustCompile(`^PROCESS +COUNT +WC_TIME latest \(ms\)\np_1 +` + calls + ` +[0-9.]+\n$`)
	if got := s.must(t, "", "probe", "value", "probe-1"); !table.MatchString(got) {
		t.Errorf("the table is\n%s", got)
	}
	if got := s.must(t, "", "probe", "value", "--xml", "probe-1"); !strings.Contains(got, `metric="COUNT" value="`+calls+`" unit="1"`) {
		t.Errorf("as XML the values are\n%s", got)
	}
	if request := s.probe(t, "probe-1").Request; !strings.Contains(request, `from="tally:work"`) {
		t.Errorf("the request is %s", request)
	}
	if text := wants(t, "--unix-socket", s.socket, "http://mirador/probes/probe-1"); !strings.Contains(text, `"request": "<instrreq activated=`) {
		t.Errorf("the request is not legible: %s", text)
	}
	var list []probeRow
	if err := json.Unmarshal([]byte(s.must(t, "", "probe", "list", "--json")), &list); err != nil || len(list) != 1 || list[0].Region != "tally:work" || list[0].Placement != "inline" {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if got := s.must(t, "", "probe", "list"); !strings.Contains(got, "probe-1  tally  active  tally:work  COUNT,WC_TIME  inline") {
		t.Errorf("the list is\n%s", got)
	}
	for word, args := range map[string][]string{
		"probe-1\tCOUNT,WC_TIME tally:work\n": {"value", ""}, "WAIT_TIME\t": {"add", "--metric", ""}, "tally\n": {"list", "--app", ""},
		"tally:work\twork\n": {"add", "--region", "tally:wo"}, "tally:\nlibc.so.6:\n": {"add", "--region", ""}, "libc.so.6:fopen": {"add", "--app", "tally", "--region", "libc.so.6:fo"},
	} {
		if got := s.must(t, "", append([]string{"__complete", "probe"}, args...)...); !strings.Contains(got, word) {
			t.Errorf("%v is completed by %q, want %q", args, got, word)
		}
	}
	s.must(t, "", "probe", "rm", "probe-1")
	const idle = "probe-2 has no values: no thread has executed tally:main since the probe was activated or reset\n"
	if got := s.must(t, "", "probe", "add", "--region", "tally:main", "--metric", "COUNT", "--for", "10ms"); got != idle {
		t.Errorf("a function that is not called: %s", got)
	}
	// A region is measured from its beginning to its end also if it is named once; lines of threads have their names.
	s.must(t, "", "probe", "add", "--region", "tally:nap", "--metric", "SYSCALL_COUNT", "--label", "nap")
	c.says("nap 5")
	table = regexp.MustCompile(`^NODE +PROCESS +THREAD +NAME +SYSCALL_COUNT latest\nn_1 +p_1 +t_\d+ +tally +1\n$`)
	if got := s.must(t, "", "probe", "value", "--label", "nap"); !table.MatchString(got) {
		t.Errorf("of a region that is named once, with a thread's name, the table is\n%s", got)
	}
	s.must(t, "", "attach", "--app", "other", strconv.Itoa(c.PID))
	s.must(t, "", "probe", "add", "--app", "other", "--metric", "SYSCALL_COUNT")
	s.must(t, "", "probe", "rm", "--app", "other")
	if got := s.must(t, "", "probe", "list"); strings.Contains(got, "other") || !strings.Contains(got, "nap") {
		t.Errorf("after the probes of one application were removed:\n%s", got)
	}
	s.must(t, "", "release", "other")
	if out, errs, _ := s.mirador(t, "", "attach", strconv.Itoa(c.PID)); out != "tally p_1\n" || !strings.Contains(errs, "observed already, as application tally; --app NAME") {
		t.Errorf("attached again: %s%s", out, errs)
	}
	s.must(t, "", "probe", "rm", "--label", "nap")
	for _, refused := range []struct {
		status int
		why    string
		args   []string
	}{
		{2, "a --metric is needed", []string{"add"}},
		{2, "--for and --inactive exclude each other", []string{"add", "--metric", "COUNT", "--for", "1s", "--inactive"}},
		{2, "unknown flag: --percentile; did you mean --percentiles?", []string{"add", "--percentile", "50"}},
		{2, "--histogram needs --for", []string{"add", "--metric", "WC_TIME", "--region", "work", "--histogram"}},
		{2, "--destination needs a --delivery", []string{"add", "--metric", "COUNT", "--destination", "file:///tmp/x"}},
		{2, `there is no command "probe ad"; did you mean probe add`, []string{"ad", "--metric", "COUNT"}},
		{1, `did you mean COUNT?; "mirador catalog" lists the metrics`, []string{"add", "--metric", "CONUT"}},
		{2, "want each or a time such as 1s", []string{"add", "--metric", "COUNT", "--delivery", "0"}},
		{2, "write mirador probe rm ID… | --label LABEL", []string{"rm", "--label", "ci", "probe-1"}},
		{2, "write mirador probe value ID… | --label LABEL", []string{"value"}},
		{1, `no probe has the label "none"`, []string{"rm", "--label", "none"}},
		{1, `there is no application "none"`, []string{"rm", "--app", "none"}},
		{2, "a time needs a unit, such as 5s or 5ms", []string{"add", "--metric", "COUNT", "--for", "5"}},
		{1, "there is no system call send: the C library's send makes sendto", []string{"add", "--metric", "SYSCALL_COUNT:send"}},
		{2, "want ordered or fast", []string{"add", "--metric", "COUNT", "--clock", "slow"}},
		{2, `"p50" is no number`, []string{"add", "--metric", "WC_TIME", "--percentiles", "p50"}},
		{1, "WC_TIME is measured on a region: add a --region", []string{"add", "--metric", "WC_TIME"}},
		{1, "no thread worker; there are t_", []string{"add", "--metric", "SYSCALL_COUNT", "--thread", "worker"}},
		{2, "--every must be positive", []string{"watch", "--every", "0s", "probe-1"}},
		{1, "mirador: no unit tally:wark; did you mean tally:work", []string{"add", "--metric", "COUNT", "--region", "tally:wark"}},
		{1, `there is no probe "probe-1"`, []string{"value", "probe-1"}},
		{1, `there is no probe "probe-1"`, []string{"rm", "probe-1"}},
	} {
		_, errs, status := s.mirador(t, "", append([]string{"probe"}, refused.args...)...)
		if status != refused.status || !strings.Contains(errs, refused.why) {
			t.Errorf("%v: status %d, %s", refused.args, status, errs)
		}
	}
}

// TestProbeForAWhile measures for a while, by one command that leaves nothing behind, also
// if it is interrupted.
func TestProbeForAWhile(t *testing.T) {
	s := startServe(t, 0)
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	c.says("go")
	var m measured
	out := s.must(t, "", "probe", "add", "--region", "tally:work", "--metric", "WC_TIME", "--percentiles", "50,99", "--aggregate", "maximum,sum", "--histogram", "--for", "200ms", "--json")
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatal(err)
	}
	if m.Probe != "probe-1" || m.App != "tally" || m.Region != "tally:work" || m.Placement != "inline" || m.Seconds < 0.2 {
		t.Errorf("measured is %s", out)
	}
	executions := int64(0)
	for _, b := range m.Histogram {
		executions += b.Executions
	}
	if executions < 1000 || m.Histogram[0].AtMost != 1e-7 {
		t.Errorf("the histogram is %+v", m.Histogram)
	}
	functions := make(map[string]bool)
	for _, v := range m.Values {
		number, err := v.Value.Float64()
		functions[v.Function] = err == nil && (number > 0 || v.Function != "MAXIMUM" && number == 0)
	}
	for _, f := range []string{"MAXIMUM", "SUM", "p50", "p99"} {
		if !functions[f] {
			t.Errorf("%s is missing: %s", f, out)
		}
	}
	cmd := exec.Command(miradorPath, "probe", "add", "--region", "tally:work", "--metric", "COUNT", "--for", "1h")
	cmd.Env = append(cmd.Environ(), "MIRADOR_GATEWAY=unix:"+s.socket)
	interrupted := subject.Start(t, cmd)
	eventually(t, "the probe is planted", func() bool { return strings.Contains(s.must(t, "", "probe", "list"), "probe-2") })
	if err := syscall.Kill(interrupted.PID, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if header := interrupted.Line(); !strings.HasSuffix(header, "THREAD  NAME   COUNT") {
		t.Errorf("the interrupted command prints %q", header)
	}
	eventually(t, "nothing is left", func() bool { return s.must(t, "", "probe", "list", "--json") == "[]\n" })
	var text, errs strings.Builder
	ends := exec.Command(miradorPath, "probe", "add", "--region", "tally:work", "--metric", "COUNT", "--for", "1h", "--json")
	ends.Env, ends.Stdout, ends.Stderr = append(ends.Environ(), "MIRADOR_GATEWAY=unix:"+s.socket), &text, &errs
	if err := ends.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the last probe is planted", func() bool { return strings.Contains(s.must(t, "", "probe", "list"), " active ") })
	c.Kill()
	if err := errors.Join(ends.Wait(), json.Unmarshal([]byte(text.String()), &m)); err != nil || m.Notice != allEnded || m.Placement != "inline" {
		t.Errorf("of a process that has ended: %s%s, %v", text.String(), errs.String(), err)
	}
}

// TestProbeLabel scrapes the values of a labelled probe, as Prometheus does.
func TestProbeLabel(t *testing.T) {
	s := startServe(t, 0)
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	before := c.says("stop")
	s.must(t, "", "probe", "add", "--region", "tally:work", "--metric", "COUNT", "--process", "*", "--label", "ci")
	s.must(t, "", "probe", "add", "--region", "tally:work", "--metric", "COUNT", "--process", "*")
	c.says("go")
	time.Sleep(20 * time.Millisecond)
	calls := c.says("stop") - before
	want := regexp.MustCompile(`(?m)^mirador_probe_count_total\{app="tally",.*label="ci",.*probe="probe-1",process="p_1",region="tally:work",thread=""\} (.*)$`)
	found := want.FindStringSubmatch(wants(t, "--unix-socket", s.socket, "http://mirador/metrics"))
	if found == nil {
		t.Fatal("the value is not there")
	}
	if got, err := strconv.ParseFloat(found[1], 64); err != nil || int(got) != calls {
		t.Errorf("the value is %s, want %d calls", found[1], calls)
	}
	if got := s.must(t, "", "probe", "value", "--label", "ci"); !strings.Contains(got, strconv.Itoa(calls)) {
		t.Errorf("by the label the values are\n%s", got)
	}
	if got := s.must(t, "", "__complete", "probe", "rm", "--label", ""); !strings.HasPrefix(got, "ci\n:") {
		t.Errorf("the labels are completed by %q", got)
	}
	s.must(t, "", "probe", "rm", "--label", "ci")
	if got := s.must(t, "", "probe", "list"); strings.Contains(got, "probe-1") || !strings.Contains(got, "probe-2") {
		t.Errorf("left are\n%s", got)
	}
}

// TestProbeLease checks that a probe ends with its lease, and so does one whose command was
// killed.
func TestProbeLease(t *testing.T) {
	t.Parallel()
	s := startServe(t, 0)
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	// A job that uses its probe until it is killed.
	job := exec.Command("sh", "-c", `"$0" probe add --region tally:work --metric COUNT --lease 3s && while "$0" probe value probe-1; do sleep 0.1; done`, miradorPath)
	job.Env = append(job.Environ(), "MIRADOR_GATEWAY=unix:"+s.socket)
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ci := subject.Start(t, job)
	eventually(t, "the job has its probe", func() bool { return strings.Contains(s.must(t, "", "probe", "list"), "probe-1") })
	cmd := exec.Command(miradorPath, "probe", "add", "--region", "tally:work", "--metric", "COUNT", "--for", "1s")
	cmd.Env = append(cmd.Environ(), "MIRADOR_GATEWAY=unix:"+s.socket)
	killed := subject.Start(t, cmd)
	eventually(t, "the second probe is planted", func() bool { return strings.Contains(s.must(t, "", "probe", "list"), "probe-2") })
	killed.Kill()
	if end := s.probe(t, "probe-2").Expires; end == nil || time.Until(*end) > 61*time.Second || time.Until(*end) < 40*time.Second {
		t.Errorf("the lease of the killed command's probe ends at %v", end)
	}
	if err := syscall.Kill(-ci.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first probe is removed", func() bool { return !strings.Contains(s.must(t, "", "probe", "list"), "probe-1") })
	if !strings.Contains(s.logged(), "nothing has used the probe for 3s, its lease") {
		t.Error("the log does not have the reason")
	}
}
