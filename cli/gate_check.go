package cli

import (
	"github.com/spf13/cobra"

	"mirador/cli/gate"
	"mirador/cli/gate/recorded"
)

func newGateCheck(g *globals) *cobra.Command {
	var file string
	var formats gateFormats
	cmd := &cobra.Command{
		Use:   "check -f FILE HEAD [BASE...] [flags]",
		Short: "Judge recorded values by a gate file",
		Long: `Judges the values in HEAD, and compares them with those in BASE, if the gate has limits for
that. Both are files, or directories of files:

measurement documents, with the probes that the requests of the gate file make, in
the same order; each document is one run;

output of "go test -bench", each line is one run. The limits are in
<g:benchmark name="Parse"><metric name="sec/op" g:max-change="3%"/></g:benchmark>.

Changes of times are judged by the exact test of Mann and Whitney, which needs at least five
values of head and four of base. No program is started.`,
		Example: `  mirador gate check -f gate.xml monday.xml
  go test -bench . -benchmem -count 10 > head.txt
  mirador gate check -f gate.xml head.txt base.txt`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, paths []string) error {
			it, err := readGate(file)
			if err != nil {
				return err
			}
			head, err := recorded.Read(paths[:1], it)
			if err != nil {
				return err
			}
			it, head = head.Only(it)
			if len(it.Limits) == 0 {
				return usagef("%s has no limits for what is in %s: <instrreq> is for measurement documents, <g:benchmark> for Go benchmarks", file, paths[0])
			}
			if len(paths) == 1 && it.NeedsBase() {
				return usagef("the gate compares with a base (exact=\"true\" or max-change): give files of base behind %s", paths[0])
			}
			var base *recorded.Values
			if it.NeedsBase() {
				if base, err = recorded.Read(paths[1:], it); err != nil {
					return err
				}
			}
			rep, err := gate.Check(file, it, head, base)
			if err != nil {
				return err
			}
			return formats.publish(g, rep)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "gate.xml", "the gate file")
	formats.define(cmd)
	return cmd
}
