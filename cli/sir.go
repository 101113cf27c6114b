package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/prometheus/procfs"
	"github.com/spf13/cobra"

	"mirador/cli/possible"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
	"mirador/sir"
	"mirador/sir/binary"
	"mirador/sir/debuginfod"
)

func newSIR(g *globals) *cobra.Command {
	var output, grep, lines, program string
	var pid, depth int
	var tree, asJSON, placements bool
	cmd := &cobra.Command{
		Use:   "sir [-o FILE] FILE…|--pid PID",
		Short: "Print the structure of programs",
		Long: `Prints the structure document (SIR) of executables and libraries, or of all that a
process has loaded: its functions, with the ids that an instrumentation request
refers to. With --depth 2 and more it contains the regions inside functions: loops,
their bodies, and calls. Source files (C, C++, Java, Go, Fortran) are described as one program,
with all regions, and what was not understood is printed. --tree and --lines print a table of all regions: where they are
in the source, and whether they can be counted and timed. --lines marks the lines that can
be named PROGRAM:FILE:LINE: with + if they can be counted, else with -. It needs no gateway.`,
		Example: `  mirador sir /bin/bash
  mirador sir -o mmul.sir bin/mmul bin/libmmul.so
  mirador sir --tree --grep '^mmul:multiply' bin/mmul
  mirador sir --lines examples/targets/mmul/work.c bin/mmul
  mirador sir --tree --program mmul examples/targets/mmul/work.c examples/targets/mmul/work.h
  mirador sir --pid $$`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case (pid != 0) == (len(args) > 0):
				return usagef("name files, or a process with --pid")
			case depth < 1:
				return usagef("--depth is at least 1: functions only")
			case placements && lines != "":
				return usagef("--lines shows no placements")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if (tree || lines != "") && !cmd.Flags().Changed("depth") {
				depth = allRegions
			}
			chosen, err := regexp.Compile(grep)
			if err != nil {
				return usagef("--grep: %v", err)
			}
			if !cmd.Flags().Changed("placements") {
				placements = depth > 1 && (grep != "" || tree || asJSON)
			}
			done := g.patience("reading symbols and lines")
			sources, programs := divide(args)
			whole := grep != "" || tree || asJSON || lines != "" || placements
			if depth > 1 && whole {
				defer debug.SetGCPercent(debug.SetGCPercent(40)) // a third less memory, for a tenth more time
			}
			structure, images, err := readStructure(cmd.Context(), programs, pid, depth, whole)
			if err == nil && len(sources) > 0 {
				var p sir.Program
				p, err = readSources(cmd.Context(), program, sources, g.streams.Err)
				structure.Programs = append(structure.Programs, p)
				if cmd.Flags().Changed("depth") {
					structure = structure.Cut(depth)
				}
			}
			var own map[int]*sir.Region
			if lines != "" && err == nil {
				own, err = linesOf(cmd.Context(), images, lines)
			}
			all := structure
			if grep != "" && err == nil {
				structure = structure.Where(func(r *sir.Region) bool { return chosen.MatchString(r.ID) || chosen.MatchString(r.Name) })
			}
			if placements && err == nil {
				err = possible.New(landing.NewCatalog()).FindAll(cmd.Context(), images, structure)
			}
			done()
			if err != nil {
				return err
			}
			tellStripped(g.streams.Err, all)
			switch out := forPeople(g.streams.Out); {
			case lines != "":
				return printLines(out, lines, structure, own)
			case tree || asJSON:
				return printRegions(out, tableFormat{json: asJSON}, structure, all)
			default:
				return writeStructure(out, output, structure)
			}
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to a file")
	cmd.Flags().StringVar(&program, "program", "", "the name of the program that source files are compiled to; without it, that of the first file")
	cmd.Flags().IntVar(&pid, "pid", 0, "a process, instead of files")
	cmd.Flags().IntVar(&depth, "depth", 1, "also print the regions inside functions: 2 their outermost loops and calls, 3 those inside these, and so on")
	cmd.Flags().StringVar(&grep, "grep", "", "print only regions whose ids or names match this regular expression, and those around them")
	cmd.Flags().BoolVar(&tree, "tree", false, "print a table of all regions")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the table as JSON")
	cmd.Flags().StringVar(&lines, "lines", "", "print the lines of a source `FILE` with the ids of the regions that begin there")
	cmd.Flags().BoolVar(&placements, "placements", false, "also print in which placements regions can be measured; the default with --tree, --json, and a --depth with a --grep")
	cmd.MarkFlagsMutuallyExclusive("output", "tree", "lines")
	return cmd
}

// readStructure reads files, or what a process has loaded, with as many levels of regions. Unless the structure is needed as a
// whole, these are made while it is written.
func readStructure(ctx context.Context, files []string, pid, depth int, whole bool) (*sir.Structure, []*binary.Image, error) {
	open := binary.FromDisk
	if pid != 0 {
		var err error
		if files, err = loadedFiles(pid); err != nil {
			return nil, nil, err
		}
		open = binary.FromProcess(pid)
	}
	cache := binary.NewCache(binary.DefaultCacheBytes, debugFiles())
	s := &sir.Structure{}
	var images []*binary.Image
	for i, file := range files {
		path, err := resolved(file, pid)
		if err != nil {
			return nil, nil, err
		}
		image, err := cache.OpenAs(path, startedAs(file, path, pid, i), open)
		if err != nil && pid == 0 {
			return nil, nil, fmt.Errorf("cannot read the structure of %s: %w", file, err)
		}
		if err != nil {
			continue
		}
		program, err := image.Program(ctx)
		switch {
		case err != nil || depth == 1:
		case whole:
			program, err = image.WithInside(ctx, program)
		default:
			program, err = image.WithLater(ctx, program, depth)
		}
		if err != nil {
			return nil, nil, err
		}
		s.Programs, images = append(s.Programs, program), append(images, image)
	}
	return s.Cut(depth), images, nil
}

// linesOf returns the lines of a source file that have code in programs.
func linesOf(ctx context.Context, images []*binary.Image, file string) (map[int]*sir.Region, error) {
	full, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	found := make(map[int]*sir.Region)
	for _, name := range []string{full, filepath.Base(full)} { // a program may have been compiled elsewhere
		for _, image := range images {
			lines, err := image.Lines(ctx, name)
			if err != nil && !errors.As(err, new(*sir.LineError)) {
				return nil, err
			}
			for i := range lines {
				found[lines[i].Line] = &lines[i]
			}
		}
		if len(found) > 0 {
			break
		}
	}
	return found, nil
}

// tellStripped explains why a program has no functions, because users would take an empty structure
// for an error of Mirador.
func tellStripped(w io.Writer, s *sir.Structure) {
	for _, p := range s.Programs {
		if len(p.Regions) == 0 && len(p.Resources) == 0 {
			fmt.Fprintf(w, "mirador: %s names no functions: it is stripped, and no file with its symbols is installed\n", p.Path)
		}
	}
}

// resolved returns the path of a file as a process that runs it shows the path, so that both give
// the same ids. For the files of a process, the path is already in this form.
func resolved(file string, pid int) (string, error) {
	if pid != 0 {
		return file, nil
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the structure of %s: %w", file, err)
	}
	return path, nil
}

// startedAs returns the name under which a program is started, as in the structure of a running
// process: a program may be a symbolic link to another program. A library has the name of its file.
func startedAs(file, path string, pid, number int) string {
	switch {
	case pid != 0 && number == 0:
		return proc.TypedName(pid)
	case pid != 0 || strings.Contains(filepath.Base(path), ".so"):
		return ""
	}
	return filepath.Base(file)
}

// loadedFiles lists the files whose code a process executes.
func loadedFiles(pid int) ([]string, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return nil, fmt.Errorf("there is no process %d", pid)
	}
	maps, err := process.ProcMaps()
	if err != nil {
		return nil, fmt.Errorf("cannot look at process %d: %w", pid, err)
	}
	var files []string
	seen := make(map[string]bool)
	for _, m := range maps {
		if m.Perms.Execute && filepath.IsAbs(m.Pathname) && !seen[m.Pathname] {
			seen[m.Pathname] = true
			files = append(files, m.Pathname)
		}
	}
	return files, nil
}

func writeStructure(out io.Writer, file string, s *sir.Structure) error {
	if file == "" {
		return sir.Encode(out, s)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(sir.Encode(f, s), f.Close())
}

// debugFiles says where to look for debug information of programs: in the directories of
// distributions, and at the servers that DEBUGINFOD_URLS names.
func debugFiles() binary.DebugFiles {
	return debuginfod.New(binary.DefaultDebugDir, os.Getenv)
}
