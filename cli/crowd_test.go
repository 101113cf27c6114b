package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"mirador/mir"
	"mirador/mir/client"
	"mirador/omis/linux/subject"
)

// TestThousandsOfRegions measures thousands of functions, each by its own probe. The last request
// plants all probes; then they are deactivated, activated, read and removed together.
func TestThousandsOfRegions(t *testing.T) {
	const many = 2000
	s := startServe(t, os.Geteuid())
	target := subject.Start(t, exec.Command(subject.Compile(t, "many", "../bench/reference/many.c")))
	target.Line()
	before := textOf(t, target.PID, target.Cmd.Path)
	call := func() {
		target.Tell("call %d", many)
		target.Line()
	}
	s.must(t, "", "attach", strconv.Itoa(target.PID))
	c, err := client.New("unix:"+s.socket, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	post := func(format string, args ...any) string {
		t.Helper()
		reply, err := c.Do(t.Context(), client.Request{Method: http.MethodPost, Path: "/mir", Type: "application/xml", Body: fmt.Appendf(nil, format, args...)})
		if err != nil || reply.Status != http.StatusOK {
			t.Fatalf("%v, %v", reply, err)
		}
		return string(reply.Body)
	}
	var all strings.Builder
	for i := range many {
		id := probeID(t, post(`<instrreq activated="true" flush="%t"><codeRegion from="many:f_%d"/><metric name="COUNT"/><process id="*"/></instrreq>`, i == many-1, i))
		fmt.Fprintf(&all, `<probe id="%s"/>`, id)
	}
	control := func(action string) string {
		t.Helper()
		return post(`<ctrlreq action="%s">%s</ctrlreq>`, action, &all)
	}
	call()
	call()
	control("DEACTIVATE")
	call() // the probes are deactivated
	eventually(t, "the code of deactivated probes is removed", func() bool { return bytes.Equal(before, textOf(t, target.PID, target.Cmd.Path)) })
	control("ACTIVATE")
	call()
	values, err := mir.Decode([]byte(control("VALUE")), mir.ReplyLimits())
	if err != nil {
		t.Fatal(err)
	}
	counted := values.(*mir.Measurement).Children
	if len(counted) != many {
		t.Errorf("%d probes have a value", len(counted))
	}
	for _, m := range counted {
		if m.Value != "3" {
			t.Fatalf("%s has counted %q calls, want 3", m.ProbeID, m.Value)
		}
	}
	control("REMOVE")
	if !bytes.Equal(before, textOf(t, target.PID, target.Cmd.Path)) {
		t.Error("the probes were removed, but the code differs from before")
	}
	call()
}
