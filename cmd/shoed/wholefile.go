package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// writeWhole makes a file that is there whole or not at all, whenever the power
// fails. One that is there already it replaces, or leaves as it is and says so.
func writeWhole(path string, b []byte, mode fs.FileMode, replace bool) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	put := os.Link // a rename would replace
	if replace {
		put = os.Rename
	}
	if err := put(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
