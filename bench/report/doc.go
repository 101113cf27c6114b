// Package report summarises the figures of a benchmark and prints them: compared with a
// reference, with their goals and whether they are reached, as tables for people and as a
// JSON document for programs.
//
// Only the packages below bench import it. It measures nothing.
package report
