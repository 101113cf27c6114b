//go:build linux && amd64

// Package rig provides tests of placements with targets that do everything a known number of
// times, and with a monitor without a gateway that is attached to a target and has the
// placements that the test chooses.
//
// Only tests of omis/place, of the packages below it, and of cli/possible import rig.
package rig
