package cli

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mirador/examples/targets/report"
	"mirador/mir"
	"mirador/mir/client"
	"mirador/omis"
)

// demonstration is one run of the demo, as a client of its own gateway.
type demonstration struct {
	gateway *client.Client
	out     io.Writer
	target  string
	dir     string
}

// demoWork makes enough calls to be worth counting, but few enough that thousands of stops take
// little time: 3 threads, 8 x 8 calls a round, 10 rounds.
var demoWork = [...]string{"--wait", "--stay", "3", "8", "10"}

// region is a function of mmul that is called often and returns quickly.
const region = "dot"

func (d *demonstration) measure(ctx context.Context) error {
	counts := filepath.Join(d.dir, "counts")
	process, err := d.launch(ctx, append([]string{"--counts", counts}, demoWork[:]...)...)
	if err != nil {
		return err
	}
	defer d.release(ctx)
	if _, err := d.post(ctx, `<snapshotreq named="true" stack="8"/>`); err != nil {
		return err
	}
	unit, err := d.findUnit(ctx)
	if err != nil {
		return err
	}
	probe, err := d.instrument(ctx, unit, process.Token)
	if err != nil {
		return err
	}
	if err := syscall.Kill(process.PID, syscall.SIGUSR2); err != nil { // mmul waits for this signal before it begins
		return err
	}
	own, err := d.ownCount(ctx, process.PID, counts)
	if err != nil {
		return err
	}
	measured, err := d.value(ctx, probe)
	if err != nil {
		return err
	}
	if measured != fmt.Sprint(own) {
		return fmt.Errorf("the measured count of %s is %s, but mmul itself counted %d calls", region, measured, own)
	}
	fmt.Fprintf(d.out, "\nmmul itself counted %d calls of %s: the measured count agrees.\n", own, region)
	return nil
}

// stay starts a target that runs until the demo is interrupted.
func (d *demonstration) stay(ctx context.Context, socket string) error {
	fmt.Fprintln(d.out)
	if _, err := d.launch(ctx, "--pace", "2000", "3", "32"); err != nil {
		return err
	}
	defer d.release(ctx)
	fmt.Fprintf(d.out, "\nTry next, in another terminal (Ctrl-C here ends it all):\n%s", curls(socket))
	<-ctx.Done()
	return nil
}

// launch starts the target and waits until the target reports that it is ready.
func (d *demonstration) launch(ctx context.Context, args ...string) (client.Process, error) {
	output := filepath.Join(d.dir, "output")
	app, err := d.gateway.Launch(ctx, "mmul", client.LaunchRequest{
		Path: d.target, Args: args, Env: os.Environ(), Dir: d.dir, Stdout: output, Stderr: filepath.Join(d.dir, "errors"),
	})
	if err != nil {
		return client.Process{}, err
	}
	process := app.Processes[len(app.Processes)-1]
	fmt.Fprintf(d.out, "started %s %s: process %d, token %s\n", d.target, strings.Join(args, " "), process.PID, process.Token)
	return process, d.until(ctx, "be ready", func() bool {
		text, err := os.ReadFile(output)
		return err == nil && bytes.Contains(text, fmt.Appendf(nil, "ready %d\n", process.PID))
	})
}

// release ends the target, also if the demo was interrupted.
func (d *demonstration) release(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := d.gateway.Release(bounded, "mmul", true)
	if err != nil {
		fmt.Fprintln(d.out, "cannot end mmul:", err)
	}
}

// until waits until done returns true.
func (d *demonstration) until(ctx context.Context, what string, done func() bool) error {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("mmul did not %s: %w", what, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// post sends a document and prints the request and the answer.
func (d *demonstration) post(ctx context.Context, document string) ([]byte, error) {
	reply, err := d.send(ctx, document)
	if err != nil {
		return nil, err
	}
	return reply, printIndented(d.out, reply)
}

func (d *demonstration) send(ctx context.Context, document string) ([]byte, error) {
	fmt.Fprintf(d.out, "\nPOST /mir\n%s\n\n", document)
	reply, err := d.gateway.Text(ctx, "", []byte(document), client.Extended)
	if err != nil {
		return nil, err
	}
	if err := reply.Err(); err != nil {
		return nil, fmt.Errorf("the gateway answered %d: %w", reply.Status, err)
	}
	return reply.Body, nil
}

// findUnit asks for the structure of the target and returns the id of the function. It prints only
// this unit, because the document is long.
func (d *demonstration) findUnit(ctx context.Context) (id string, err error) {
	document, err := d.send(ctx, fmt.Sprintf(`<sirreq><resource in="file://%s"/></sirreq>`, d.target))
	if err != nil {
		return "", err
	}
	var structure struct {
		Units []struct {
			ID   string `xml:"id,attr"`
			Name string `xml:"name,attr"`
		} `xml:"program>unit"`
	}
	if err := xml.Unmarshal(document, &structure); err != nil {
		return "", err
	}
	for _, u := range structure.Units {
		if u.Name == region {
			fmt.Fprintf(d.out, "<sir> with %d units, among them <unit id=%q name=%q …/>\n", len(structure.Units), u.ID, u.Name)
			return u.ID, nil
		}
	}
	return "", fmt.Errorf("the structure of %s has no function %s", d.target, region)
}

func (d *demonstration) instrument(ctx context.Context, unit string, process omis.Token) (probe string, err error) {
	reply, err := d.post(ctx, fmt.Sprintf(`<instrreq activated="true" flush="true">
  <codeRegion from=%q/>
  <metric name="COUNT"/>
  <metric name="WC_TIME"/>
  <process id=%q/>
</instrreq>`, unit, process))
	if err != nil {
		return "", err
	}
	document, err := mir.Decode(reply, mir.ReplyLimits())
	if err != nil {
		return "", err
	}
	p, ok := document.(*mir.Probe)
	if !ok {
		return "", fmt.Errorf("an instrreq was answered by a %s", document.Root())
	}
	return p.ID, nil
}

// ownCount waits until the target has finished its work, and returns the target's own count.
func (d *demonstration) ownCount(ctx context.Context, pid int, counts string) (int64, error) {
	var last *report.Report
	err := d.until(ctx, "finish its work", func() bool {
		if syscall.Kill(pid, syscall.SIGUSR1) != nil { // asks for a report
			return false
		}
		r, err := report.ReadFile(counts)
		last = r
		return err == nil && r.State == "done"
	})
	if err != nil {
		return 0, err
	}
	if !last.OK {
		return 0, fmt.Errorf("mmul computed wrong products while it was measured")
	}
	return last.Total[region], nil
}

// value returns the first value of the probe, which is that of the first metric.
func (d *demonstration) value(ctx context.Context, probe string) (string, error) {
	reply, err := d.post(ctx, fmt.Sprintf(`<ctrlreq action="VALUE"><probe id=%q/></ctrlreq>`, probe))
	if err != nil {
		return "", err
	}
	document, err := mir.Decode(reply, mir.ReplyLimits())
	if err != nil {
		return "", err
	}
	m, ok := document.(*mir.Measurement)
	if !ok {
		return "", fmt.Errorf("a request for a value was answered by a %s", document.Root())
	}
	for len(m.Children) > 0 {
		m = &m.Children[0]
	}
	return m.Value, nil
}
