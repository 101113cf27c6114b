//go:build linux && amd64

package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"mirador/omis"
	"mirador/omis/host/owned"
)

// checkpoint is a checkpoint on disk: a folder with a list of processes and, for each process,
// a folder with the images that CRIU made, named by its pid. The folder gets its final name
// when it is complete; if that fails, an earlier checkpoint of this name remains.
type checkpoint struct {
	name    string
	folder  string // current folder
	final   string // folder when it is complete
	roots   []int
	members []int // all processes that were seen
	stopped []int // processes that job control had stopped
}

// listName is the file of a checkpoint that lists its processes. The others are the words with
// which its lines begin.
const (
	listName    = "processes"
	treeLine    = "tree"
	memberLine  = "member"
	stoppedLine = "stopped"
)

var checkpointName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (cs *checkpoints) checkpointFolder(name string) (string, error) {
	if !checkpointName.MatchString(name) {
		return "", omis.Errorf(omis.ParameterError, "a checkpoint cannot be called %q: letters, digits, dots, dashes and underscores make a name", name)
	}
	if cs.folder != "" {
		return filepath.Join(cs.folder, name), nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", omis.Errorf(omis.OSError, "there is no folder for checkpoints: %w", err)
	}
	return filepath.Join(cache, "mirador", "checkpoints", name), nil
}

// newCheckpoint begins a checkpoint.
func (cs *checkpoints) newCheckpoint(name string) (*checkpoint, error) {
	final, err := cs.checkpointFolder(name)
	if err != nil {
		return nil, err
	}
	s := &checkpoint{name: name, final: final}
	if _, err := owned.Directory(filepath.Dir(final)); err != nil {
		return nil, s.failed(err)
	}
	// No checkpoint can have such a name.
	if s.folder, err = os.MkdirTemp(filepath.Dir(final), ".making-*"); err != nil {
		return nil, s.failed(err)
	}
	return s, nil
}

// savedCheckpoint finds a checkpoint.
func (cs *checkpoints) savedCheckpoint(name string) (*checkpoint, error) {
	folder, err := cs.checkpointFolder(name)
	if err != nil {
		return nil, err
	}
	s := &checkpoint{name: name, folder: folder, final: folder}
	// The writer of the images decides what the restored processes do.
	_, err = owned.Existing(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, omis.Errorf(omis.UnknownObject, "there is no checkpoint %q", name)
	}
	if err != nil {
		return nil, omis.Errorf(omis.NoPermission, "cannot use the checkpoint %s: %w", name, err)
	}
	list, err := owned.ReadFile(filepath.Join(folder, listName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, omis.Errorf(omis.UnknownObject, "there is no checkpoint %q", name)
	}
	if err != nil {
		return nil, omis.Errorf(omis.OSError, "cannot read the checkpoint %s: %w", name, unwrapPath(err))
	}
	for line := range strings.Lines(string(list)) {
		var what string
		var pid int
		if _, err := fmt.Sscan(line, &what, &pid); err != nil {
			return nil, omis.Errorf(omis.OSError, "the checkpoint %s is damaged: %q names no process", name, line)
		}
		switch what {
		case treeLine:
			s.roots = append(s.roots, pid)
		case memberLine:
			s.members = append(s.members, pid)
		case stoppedLine:
			s.stopped = append(s.stopped, pid)
		}
	}
	return s, nil
}

// images returns the folder of CRIU's files about a process.
func (s *checkpoint) images(pid int) string { return filepath.Join(s.folder, strconv.Itoa(pid)) }

func (s *checkpoint) failed(err error) error {
	return omis.Errorf(omis.OSError, "cannot save the checkpoint %s: %w", s.name, unwrapPath(err))
}

// abandon removes what was made so far.
func (s *checkpoint) abandon(cause error) error {
	if err := os.RemoveAll(s.folder); err != nil {
		return errors.Join(cause, s.failed(err))
	}
	return cause
}

// complete gives a checkpoint its name, and replaces an earlier one of this name.
func (s *checkpoint) complete() error {
	var list strings.Builder
	for _, pid := range s.roots {
		fmt.Fprintln(&list, treeLine, pid)
	}
	for _, pid := range s.members {
		fmt.Fprintln(&list, memberLine, pid)
	}
	for _, pid := range s.stopped {
		fmt.Fprintln(&list, stoppedLine, pid)
	}
	if err := os.WriteFile(filepath.Join(s.folder, listName), []byte(list.String()), 0o600); err != nil {
		return s.abandon(s.failed(err))
	}
	if err := os.RemoveAll(s.final); err != nil {
		return s.abandon(s.failed(err))
	}
	if err := os.Rename(s.folder, s.final); err != nil {
		return s.abandon(s.failed(err))
	}
	return nil
}
