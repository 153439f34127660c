// Package config reads, checks and explains the configuration of shoed: one TOML
// file, overridden by environment variables.
//
//	config.go       Config and Load
//	keys.go         every key with its default, its explanation and what it accepts
//	strict.go       the file against the keys: names, types, duplicates, positions
//	environment.go  SHOED_ variables against the keys
//	check.go        values: each against its key, and those that hang together
//	problem.go      what is wrong, where, and what to do
//	example.go      the example file, made from the keys
//	inforce.go      the values in force, where they are from, and what a reload changes of them
//
// viper only layers what has been checked before: by itself it ignores misspelt
// keys, folds their case and converts types.
package config
