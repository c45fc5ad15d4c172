accept-queue-title = Les connexions arrivent plus vite qu’un programme ne les accepte
