# Manual pages: what stands in them beside the help.

man-name = NAME
man-synopsis = SYNOPSIS
man-description = DESCRIPTION
man-commands = COMMANDS
man-files = FILES
man-see-also = SEE ALSO

man-file-tune = Old values of what tune changed, for wirespeed-tune-undo(1).
man-file-lab = Labs that are up.
man-file-control = The control socket, which wg(8) speaks to.
man-file-statistics = Answers every connection with what the device counts, as JSON.
