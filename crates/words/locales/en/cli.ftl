# What the program says of itself: commands, files, wrong input.

explain-list = The causes wirespeed knows:
explain-list-more = wirespeed explain CODE tells more about one.
explain-no-such-code = there is no cause with the code { $code }
explain-no-such-code-todo = wirespeed explain lists those there are
