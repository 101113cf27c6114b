// Package report sums up what a benchmark measures and prints it: figures beside those
// of a reference, with the goals they are to reach and whether they do, as tables for
// people and as one JSON document for programs.
//
// Only the packages below bench import it. Nothing in it measures anything.
package report
